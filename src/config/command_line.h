// The command line as a struct. No file is read here: loader.h turns it into Settings.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "src/config/settings.h"

namespace simclr {

enum class Command { kTrain, kInfo, kLoss, kPreview, kReport, kEvaluate, kEmbed, kExport, kPack, kHelp, kVersion };

enum class LossPrecision { kAsFiles, kFp32, kFp64 };

// Arguments of `loss`.
struct LossCommand {
  std::array<std::string, 2> views;      // .npy files
  std::array<std::string, 2> gradients;  // where to write the gradients of the views; "" = not written
  LossSettings settings;                 // temperature, margin, decoupled
  LossPrecision precision = LossPrecision::kAsFiles;
  bool json = false;
  int threads = 0;  // per rank; 0 = its share of the cores

  bool has_gradient() const { return !gradients[0].empty() || !gradients[1].empty(); }
};

// The configuration of a subcommand, given as for training.
struct ConfigSource {
  std::string config;                  // the YAML file
  std::vector<std::string> overrides;  // "section.key=value", in the order given
};

// A trained encoder, and the data set and settings to use it with.
struct EncoderSource {
  std::string checkpoint;  // a file, or a run folder, for its newest checkpoint
  ConfigSource source;     // changes to the configuration in the checkpoint; config "" = none
  int64_t batch = 0;       // images per call on each rank; 0 = chosen for the machine
};

// Arguments of `evaluate`.
struct EvaluateCommand {
  EncoderSource encoder;
  std::vector<int> k = {1, 20, 200};           // of k-NN
  std::vector<double> percent = {1, 10, 100};  // of the training labels that the linear probe sees
  double c = 0;                                // the probe's inverse regularization; 0 = chosen on held-out labels
  std::string json;                            // where to write the results; "" = not written
};

// Arguments of `embed`.
struct EmbedCommand {
  EncoderSource encoder;
  std::string output;       // .npy file of features
  std::string labels;       // .npy file of labels; "" = none
  bool test_split = false;  // else train
  bool projector = false;   // the projector's outputs instead of the encoder's
};

// Arguments of `export`.
struct ExportCommand {
  std::string checkpoint;  // a file, or a run folder, for its newest checkpoint
  std::string output;      // .safetensors
  bool include_projector = false;
};

// Arguments of `preview`.
struct PreviewCommand {
  std::string output = "views.png";
  int64_t rows = 8;
};

// Arguments of `pack`.
struct PackCommand {
  ConfigSource source;  // the data set
  std::string output;   // the file to write
  int64_t size = 256;   // shorter side of larger images, pixels; 0 = no resizing
  int threads = 0;      // 0 = all cores
  std::string check;    // a packed file to compare with its checksums, instead
};

struct CommandLine {
  Command command = Command::kTrain;
  ConfigSource source;          // kTrain, kPreview
  std::string resume = "auto";  // kTrain: auto, none, or the path of a checkpoint
  std::string output;           // kTrain: the run folder itself; "" = run.output_dir/run.name
  bool dry_run = false;         // kTrain: everything up to the first step
  bool print_config = false;    // kTrain: print the resolved configuration and exit
  bool quiet = false;           // kTrain: the console shows only warnings, errors and the outcome
  int64_t profile_steps = 0;    // kTrain: steps to profile; 0 = none
  std::string info_file;        // kInfo: the checkpoint
  LossCommand loss;             // kLoss
  PreviewCommand preview;       // kPreview
  std::string report_folder;    // kReport
  EvaluateCommand evaluate;     // kEvaluate
  EmbedCommand embed;           // kEmbed
  ExportCommand exported;       // kExport
  PackCommand pack;             // kPack
  std::string help;             // kHelp: the text to print
};

// argv as main() has it. Error(kUsage), one line with a hint, for anything that is not understood.
CommandLine parse_command_line(int argc, const char* const* argv);

// The folder that the run writes into.
std::string run_folder(const CommandLine& command_line, const Settings& settings);

}  // namespace simclr
