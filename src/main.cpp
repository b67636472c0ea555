// simclr_train: argv -> command line -> session -> run; the one try/catch, and the end of all ranks.
#include <fmt/format.h>

#include <optional>

#include "src/base/log.h"
#include "src/base/print.h"
#include "src/base/version.h"
#include "src/checkpoint/checkpoint_store.h"
#include "src/comm/agreement.h"
#include "src/comm/make_collectives.h"
#include "src/comm/stop_signals.h"
#include "src/comm/topology.h"
#include "src/commands/embed.h"
#include "src/commands/evaluate.h"
#include "src/commands/export.h"
#include "src/commands/info.h"
#include "src/commands/loss.h"
#include "src/commands/pack.h"
#include "src/commands/preview.h"
#include "src/commands/report.h"
#include "src/config/command_line.h"
#include "src/device/context.h"
#include "src/train/run.h"

namespace simclr {
namespace {

void print_versions(const MpiSession& session) {
  print_out(fmt::format("simclr_train {}\n{}\nMPI: {}\n", kProgramVersion, Context(1).library_version(),
                        session.library_version()));
}

// What of the command line has to be known before MPI_Init. Its faults are told when all ranks can agree on them.
bool takes_notices(int argc, char** argv) noexcept {
  try {
    const CommandLine line = parse_command_line(argc, argv);
    return line.command == Command::kTrain && !line.dry_run && !line.print_config;
  } catch (...) {
    return false;
  }
}

// MPI_Init waits for all ranks, and for a host that never comes without end.
void start_session(std::optional<MpiSession>& session, RunHandles& handles) {
  handles.start_deadline = std::make_unique<StartDeadline>(
      handles.heartbeat,
      StartDeadline::Options{.limit_s = TrainSettings{}.timeout_s, .rank = read_launcher().rank, .host = host_name()});
  const InsideCollective inside(&handles.heartbeat);
  session.emplace();
  handles.session = &*session;
}

ExitCode run_command(const CommandLine& line, RunHandles& handles) {
  const bool first = handles.session->rank() == 0;
  const bool watches_ranks =
      line.command == Command::kTrain || line.command == Command::kEvaluate || line.command == Command::kEmbed;
  if (!watches_ranks) handles.start_deadline.reset();
  switch (line.command) {
    case Command::kTrain:
      return train(line, handles);
    case Command::kInfo:
      agree_on(*handles.bootstrap, [&] {
        if (first) print_out(describe_checkpoint(find_checkpoint(line.info_file), InfoConfig::kLeaveOut));
      });
      break;
    case Command::kLoss:
      check_loss(line.loss, {*handles.bootstrap, handles.heartbeat, handles.watchdog});
      break;
    case Command::kPreview:
      agree_on(*handles.bootstrap, [&] {
        if (first) print_out(write_preview(line.preview, line.source));
      });
      break;
    case Command::kEvaluate:
      evaluate(line.evaluate, handles);
      break;
    case Command::kReport:
      agree_on(*handles.bootstrap, [&] {
        if (first) print_out(rewrite_report(line.report_folder));
      });
      break;
    case Command::kEmbed:
      embed(line.embed, handles);
      break;
    case Command::kExport:
      agree_on(*handles.bootstrap, [&] {
        if (first) print_out(export_encoder(line.exported));
      });
      break;
    case Command::kPack:
      agree_on(*handles.bootstrap, [&] { pack(line.pack, handles.session->size()); });
      break;
    case Command::kHelp:
      if (first) print_out(line.help);
      break;
    case Command::kVersion:
      if (first) print_versions(*handles.session);
      break;
  }
  return leave_in_order(handles.way(), ExitCode::kDone);
}

int run_program(int argc, char** argv) {
  std::optional<MpiSession> session;
  RunHandles handles;
  try {
    if (takes_notices(argc, argv)) handle_notices();
    start_session(session, handles);
    start_log({.rank = session->rank(), .ranks = session->size(), .host = host_name()});
    handles.bootstrap = make_collectives(*session, Reduction::kFastest, &handles.heartbeat);  // for any number of ranks
    const CommandLine line = agree_on(*handles.bootstrap, [&] { return parse_command_line(argc, argv); });
    if (line.quiet) make_console_quiet();
    return static_cast<int>(run_command(line, handles));
  } catch (...) {
    return static_cast<int>(leave_after_error(handles.way(), std::current_exception()));
  }
}

}  // namespace
}  // namespace simclr

int main(int argc, char** argv) {
  return simclr::run_program(argc, argv);
}
