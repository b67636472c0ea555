// Every setting of a run as plain structs, with its default; defaults are written nowhere else.
// Type, unit and range of each key are in config/key_table.cpp, the names of enum values in config/enum_names.h;
// configs/reference.yaml documents all of them for users, and a test compares it with these three.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/common/data_type.h"
#include "kernels/conv2d/algorithm.h"

namespace simclr {

enum class DeviceChoice { kAuto, kCpu, kCuda };
enum class DataFormat { kSynthetic, kCifar10, kCifar100, kMnist, kStl10, kImageFolder, kPacked };
enum class OnDataError { kFail, kSkip };
enum class Stem { kCifar, kImagenet };
enum class BatchNormViews { kJoint, kSeparate };
enum class LossType { kInfoNce, kBarlowTwins };
enum class LossAlgorithm { kAuto, kEinsum, kStreaming };
enum class OptimizerType { kSgd, kAdamW, kLars };
enum class LrScaling { kNone, kLinear, kSqrt };
enum class ScheduleType { kCosine, kConstant, kStep };
enum class Reduction { kOrdered, kFastest };

struct RunSettings {
  std::string name = "simclr";
  std::string output_dir = "runs";  // the run folder is output_dir/name
  uint64_t seed = 1;
  DeviceChoice device = DeviceChoice::kAuto;
  Precision precision = Precision::kFp32;
  int threads = 0;  // per rank; 0 = auto: the cores available to this rank, divided among the ranks of the host

  bool operator==(const RunSettings&) const = default;
};

struct SyntheticSettings {
  int64_t train_images = 4096;
  int64_t test_images = 1024;

  bool operator==(const SyntheticSettings&) const = default;
};

struct DataSettings {
  DataFormat format = DataFormat::kSynthetic;
  std::string path;         // folder of the dataset, or the file of packed; unused by synthetic
  int64_t image_size = 32;  // side of a view, pixels
  int workers = -1;         // prefetch threads per rank; -1 = auto; 0 = load in the training thread
  OnDataError on_error = OnDataError::kFail;
  int64_t max_pixels = 100'000'000;  // per image; checked in its header before memory is allocated
  SyntheticSettings synthetic;

  bool operator==(const DataSettings&) const = default;
};

struct JitterSettings {
  double probability = 0.8;
  double brightness = 0.4, contrast = 0.4, saturation = 0.4;  // factor uniform in [max(0, 1-x), 1+x]
  double hue = 0.1;                                           // in turns; shift uniform in [-x, x], x <= 0.5

  bool operator==(const JitterSettings&) const = default;
};

struct BlurSettings {
  double probability = 0.0;
  std::array<double, 2> sigma = {0.1, 2.0};  // pixels

  bool operator==(const BlurSettings&) const = default;
};

struct NormalizeSettings {
  std::vector<double> mean;  // per channel, pixel values in [0, 1]; empty = computed from the training images
  std::vector<double> std;

  bool operator==(const NormalizeSettings&) const = default;
};

struct ViewSettings {
  std::array<double, 2> crop_scale = {0.2, 1.0};      // share of the image's area
  std::array<double, 2> crop_ratio = {0.75, 1.3333};  // width / height
  double flip = 0.5;
  JitterSettings jitter;
  double grayscale = 0.2;
  BlurSettings blur;
  NormalizeSettings normalize;

  bool operator==(const ViewSettings&) const = default;
};

struct EncoderSettings {
  int depth = 18;
  int64_t width = 64;  // channels of the first stage
  Stem stem = Stem::kCifar;
  bool zero_init_residual = false;

  bool operator==(const EncoderSettings&) const = default;
};

struct ProjectorSettings {
  int layers = 2;
  int64_t hidden = 512;
  int64_t output = 128;
  bool batch_norm = true;

  bool operator==(const ProjectorSettings&) const = default;
};

struct BatchNormSettings {
  BatchNormViews views = BatchNormViews::kJoint;
  double momentum = 0.1;
  double eps = 1e-5;

  bool operator==(const BatchNormSettings&) const = default;
};

struct ModelSettings {
  EncoderSettings encoder;
  ProjectorSettings projector;
  BatchNormSettings batch_norm;
  ConvolutionAlgorithm convolution = ConvolutionAlgorithm::kAuto;  // CPU only
  std::string init_from = "";  // a safetensors file with initial weights; empty = random weights

  bool operator==(const ModelSettings&) const = default;
};

struct LossSettings {
  LossType type = LossType::kInfoNce;
  LossAlgorithm algorithm = LossAlgorithm::kAuto;
  double temperature = 0.5;
  double margin = 0.0;
  bool decoupled = false;
  DataType products = DataType::kFloat32;  // streaming on a GPU: type of the factors of similarities
  double lambda = 0.005;                   // barlow_twins: weight of the off-diagonal terms
  double scale = 1.0;                      // barlow_twins: factor of the whole loss

  bool operator==(const LossSettings&) const = default;
};

struct OptimizerSettings {
  OptimizerType type = OptimizerType::kSgd;
  double base_lr = 0.03;
  LrScaling lr_scaling = LrScaling::kLinear;
  double momentum = 0.9;
  bool nesterov = false;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 5e-4;
  double trust_coefficient = 0.001;  // lars
  bool decay_1d = false;             // weight decay on biases and batch-norm parameters too

  bool operator==(const OptimizerSettings&) const = default;
};

struct ScheduleSettings {
  double warmup_epochs = 0;
  ScheduleType type = ScheduleType::kCosine;
  std::vector<double> milestones = {};  // step: epochs at which the rate is multiplied by gamma
  double gamma = 0.1;

  bool operator==(const ScheduleSettings&) const = default;
};

struct TrainSettings {
  int64_t global_batch = 512;
  int shards = 8;
  int64_t epochs = 100;
  int64_t max_steps = 0;     // > 0: length of the run and its schedule in steps; `epochs` is ignored
  int64_t stop_at_step = 0;  // > 0: stop after this step (checkpoint, exit code 75); the schedule is not affected
  Reduction reduction = Reduction::kOrdered;
  int64_t check_every = 100;  // steps between comparisons of the weights of all ranks; 0 = only at the start
  double timeout_s = 600;
  double max_minutes = 0;  // > 0: stop after this time (checkpoint, exit code 75)

  bool operator==(const TrainSettings&) const = default;
};

struct CheckpointSettings {
  int64_t every_epochs = 1;
  int64_t every_steps = 0;
  double every_minutes = 0;
  int keep = 3;
  bool keep_best = false;  // best.safetensors in the run folder: the state with the highest k-NN accuracy

  bool operator==(const CheckpointSettings&) const = default;
};

struct ResumeSettings {
  // What may differ from the checkpoint at a resume: keys (`train.epochs`, `epochs`) and sections (`schedule`) that
  // affect the mathematics of a run, or `data` for other training images.
  std::vector<std::string> allow = {};

  bool operator==(const ResumeSettings&) const = default;
};

struct KnnSettings {
  int64_t every_epochs = 5;  // 0 = never; else also before the first step and after the last
  int k = 20;
  double temperature = 0.1;

  bool operator==(const KnnSettings&) const = default;
};

struct EvaluateSettings {
  KnnSettings knn;

  bool operator==(const EvaluateSettings&) const = default;
};

struct LogSettings {
  int64_t every_steps = 10;
  bool tensorboard = true;  // an event file in the run folder
  bool report = true;       // report.html in the run folder

  bool operator==(const LogSettings&) const = default;
};

struct Settings {
  RunSettings run;
  DataSettings data;
  ViewSettings views;
  ModelSettings model;
  LossSettings loss;
  OptimizerSettings optimizer;
  ScheduleSettings schedule;
  TrainSettings train;
  CheckpointSettings checkpoint;
  ResumeSettings resume;
  EvaluateSettings evaluate;
  LogSettings log;

  bool operator==(const Settings&) const = default;
};

}  // namespace simclr
