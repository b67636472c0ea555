# shellcheck shell=bash
# Sourced by scripts/gpu_check.sh: one row of the table for each thing done, and commands under a time limit. Rows are
# printed and kept in a file as they come, so that a check that is killed leaves what it had.
# shellcheck disable=SC2034,SC2154  # variables are shared with the script that sources this

rows=0 failures=0

# add_row RESULT SECONDS WHAT NOTE. RESULT: passed, FAILED, or absent (what this machine or build does not have).
add_row() {
  local line
  printf -v line '%-44s %-7s %7s  %s' "$3" "$1" "$2" "$4"
  echo "$line" | tee -a "$output/rows.txt"
  rows=$((rows + 1))
  [ "$1" != FAILED ] || failures=$((failures + 1))
}

set_deadline() { deadline_ms=$(($(now_ms) + $1 * 1000)); }
seconds_left() { echo $(((deadline_ms - $(now_ms)) / 1000)); }

# limited LIMIT_S LOG COMMAND...: output goes to LOG, libraries as found. Sets run_code, run_s (text) and run_reason:
# empty, or why the command did not end with 0. SIGTERM at the limit or the stage's deadline, SIGKILL 10 s later.
limited() {
  local limit=$1 log=$2 start left
  shift 2
  left=$(seconds_left)
  [ "$left" -ge "$limit" ] || limit=$left
  : >"$log"
  run_code=1 run_s=0.0 run_reason="no time was left for it"
  [ "$limit" -gt 0 ] || return 0
  start=$(now_ms) run_code=0
  timeout --preserve-status --kill-after=10 "$limit" env LD_LIBRARY_PATH="$library_path" "$@" >"$log" 2>&1 </dev/null ||
    run_code=$?
  run_s=$(seconds_since "$start") run_reason=""
  [ "$run_code" -eq 0 ] || run_reason="exit code $run_code, see $log"
  if [ "$run_code" -ne 0 ] && [ $(($(now_ms) - start)) -ge $((limit * 1000)) ]; then
    run_reason="not done within $limit s, see $log"
  fi
}

# The number of a line "[  PASSED  ] 12 tests." of GoogleTest, 0 without one.
gtest_count() { awk -v word="$1" '$2 == word && $4 ~ /^[0-9]+$/ {n = $4} END {print n + 0}' "$2"; }

# ": A.B A.C", the first three failed cases of a log.
failed_cases() {
  sed -n 's/^\[  FAILED  \] \([^ ,]*\) (.*/\1/p' "$1" | awk 'NR <= 3 {printf "%s%s", (NR == 1 ? ": " : " "), $1} NR == 4 {printf " ..."}'
}

# test_row LIMIT_S WHAT COMMAND...: a GoogleTest binary; what it skipped is named in the row and counted.
test_row() {
  local limit=$1 what=$2 log passed skipped
  shift 2
  log=$output/logs/${what//[^A-Za-z0-9_]/_}.log
  limited "$limit" "$log" "$@"
  if [ -n "$run_reason" ]; then
    add_row FAILED "$run_s" "$what" "$run_reason$(failed_cases "$log")"
    return
  fi
  passed=$(gtest_count PASSED "$log") skipped=$(gtest_count SKIPPED "$log")
  if [ "$passed" -eq 0 ] && [ "$skipped" -eq 0 ]; then
    add_row FAILED "$run_s" "$what" "it ran no test, see $log"
  elif [ "$skipped" -eq 0 ]; then
    add_row passed "$run_s" "$what" "$passed cases"
  else
    add_row passed "$run_s" "$what" "$passed cases, $skipped skipped, reasons in $log"
  fi
}

# The table, then what the trainings say about speed; also in $output/table.txt.
print_table() {
  {
    echo
    printf '%-44s %-7s %7s  %s\n' "what" "result" "seconds" "note"
    cat "$output/rows.txt"
    if [ -s "$output/speed.txt" ]; then
      echo
      cat "$output/speed.txt"
    fi
    echo
    echo "$rows rows, $failures failed, $(seconds_since "$begin") s; everything is in $output"
  } | tee "$output/table.txt"
}
