// simclr_train: argv -> MPI -> command line -> command -> exit code. The one try/catch; Runtime ends all ranks.
#include <fmt/format.h>

#include "src/base/log.h"
#include "src/base/print.h"
#include "src/base/version.h"
#include "src/checkpoint/checkpoint_store.h"
#include "src/comm/agreement.h"
#include "src/comm/stop_signals.h"
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
#include "src/runtime/runtime.h"
#include "src/train/run.h"

namespace simclr {
namespace {

void print_versions(const MpiSession& session) {
  print_out(fmt::format("simclr_train {}\n{}\nMPI: {}\n", kProgramVersion, Context(1).library_version(),
                        session.library_version()));
}

bool trains(const CommandLine& line) {
  return line.command == Command::kTrain && !line.dry_run && !line.print_config;
}

// What of the command line has to be known before MPI_Init. Its errors are reported once all ranks can agree on them.
bool takes_stop_requests(int argc, char** argv) noexcept {
  try {
    return trains(parse_command_line(argc, argv));
  } catch (...) {
    return false;
  }
}

ExitCode run_command(const CommandLine& line, Runtime& runtime) {
  const bool first = runtime.is_first();
  const bool watches_ranks =
      line.command == Command::kTrain || line.command == Command::kEvaluate || line.command == Command::kEmbed;
  if (!watches_ranks) runtime.end_start();
  if (trains(line)) require_launcher(read_launcher());
  switch (line.command) {
    case Command::kTrain:
      return train(line, runtime);
    case Command::kInfo:
      agree_on(runtime.host(), [&] {
        if (first) print_out(describe_checkpoint(open_checkpoint(line.info_file), InfoConfig::kLeaveOut));
      });
      break;
    case Command::kLoss:
      check_loss(line.loss, runtime);
      break;
    case Command::kPreview:
      agree_on(runtime.host(), [&] {
        if (first) print_out(write_preview(line.preview, line.source));
      });
      break;
    case Command::kEvaluate:
      evaluate(line.evaluate, runtime);
      break;
    case Command::kReport:
      agree_on(runtime.host(), [&] {
        if (first) print_out(rewrite_report(line.report_folder));
      });
      break;
    case Command::kEmbed:
      embed(line.embed, runtime);
      break;
    case Command::kExport:
      agree_on(runtime.host(), [&] {
        if (first) print_out(export_encoder(line.exported));
      });
      break;
    case Command::kPack:
      agree_on(runtime.host(), [&] { pack(line.pack, runtime.size()); });
      break;
    case Command::kHelp:
      if (first) print_out(line.help);
      break;
    case Command::kVersion:
      if (first) print_versions(runtime.mpi());
      break;
  }
  return runtime.shut_down(ExitCode::kDone);
}

int run_program(int argc, char** argv) {
  Runtime runtime;
  try {
    if (takes_stop_requests(argc, argv)) install_signal_handlers();
    runtime.begin_start();
    runtime.start_mpi();
    const CommandLine line = agree_on(runtime.host(), [&] { return parse_command_line(argc, argv); });
    if (line.quiet) make_console_quiet();
    return static_cast<int>(run_command(line, runtime));
  } catch (...) {
    return static_cast<int>(runtime.shut_down_after_error(std::current_exception()));
  }
}

}  // namespace
}  // namespace simclr

int main(int argc, char** argv) {
  return simclr::run_program(argc, argv);
}
