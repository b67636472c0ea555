#include "src/commands/trained_encoder.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "src/augment/normalization.h"
#include "src/augment/view_params.h"
#include "src/base/log.h"
#include "src/base/version.h"
#include "src/checkpoint/checkpoint_store.h"
#include "src/comm/agreement.h"
#include "src/comm/gather.h"
#include "src/commands/part_progress.h"
#include "src/config/enum_names.h"
#include "src/config/loader.h"
#include "src/config/resolved.h"
#include "src/runtime/device_choice.h"
#include "src/train/host_tensors.h"

namespace simclr {
namespace {

// The unit of a network call is a shard of training, 2n images, so that k-NN gives the same result as in the log; but at
// most this many pixels (1024 images of 32 x 32, 20 of 224 x 224), for memory.
constexpr int64_t kUnitPixels = int64_t{1} << 20;
constexpr int64_t kGpuCallImages = 256;

int64_t unit_images(const Settings& settings) {
  const int64_t shard = 2 * std::max<int64_t>(settings.train.global_batch / settings.train.shards, 1);
  const int64_t most = kUnitPixels / (settings.data.image_size * settings.data.image_size);
  return std::min(shard, std::max<int64_t>(most / 2 * 2, 2));
}

struct Opened {
  std::shared_ptr<const SafetensorsFile> file;  // open until the weights are read: its run may remove it meanwhile
  std::string name;
  CheckpointHeader header;
  Settings settings;
  bool own_precision = false;  // given for this command
  RecordedPlans plans;
};

Opened open_on_root(const EncoderSource& source) {
  Opened opened;
  opened.file = std::make_shared<const SafetensorsFile>(open_checkpoint(source.checkpoint));
  opened.header = read_checkpoint_header(*opened.file);
  opened.name = opened.file->path().string();
  const std::string& name = opened.name;
  Settings base = settings_from_string(opened.header.config_yaml, name);
  base.run.device = DeviceChoice::kAuto;
  base.run.threads = RunSettings{}.threads;
  base.loss.products = LossSettings{}.products;
  KeyOrigins given;
  opened.settings = change_settings(base, name, source.source.config, source.source.overrides, &given);
  for (const std::string& text : ignored_overrides(source.source.overrides)) log_info("{}", text);
  opened.own_precision = given.contains("run.precision");
  opened.plans = recorded_plans(opened.header, opened.settings);
  return opened;
}

}  // namespace

TrainedEncoder::TrainedEncoder(const EncoderSource& source, Runtime& runtime) : runtime_(runtime) {
  runtime_.discover_ranks();
  runtime_.watch_start();
  require_equal(runtime_.host(), ExitCode::kDevice, "program version", kProgramVersion, "start one build on all hosts");
  load_settings_and_header(source);
  start_device();
  make_model(source.batch);
  load_weights();
  runtime_.end_start();
  runtime_.heartbeat().beat(header_.step, Phase::kEvaluating);
}

// Rank 0 reads and decides for all ranks.
void TrainedEncoder::load_settings_and_header(const EncoderSource& source) {
  Collectives& ranks = runtime_.host();
  const Opened opened = agree_on(ranks, [&] { return is_first() ? open_on_root(source) : Opened{}; });
  checkpoint_ = broadcast_text(ranks, opened.name);
  file_ = opened.file;
  header_ = opened.header;
  plans_ = opened.plans;
  header_.step = gather(ranks, opened.header.step)[0];
  header_.epoch = gather(ranks, opened.header.epoch)[0];
  const auto found = opened.header.environment.find(kNormalizationKey);
  const std::string normalization =
      broadcast_text(ranks, found == opened.header.environment.end() ? "" : found->second);
  if (!normalization.empty()) header_.environment[kNormalizationKey] = normalization;
  const std::string text = broadcast_text(ranks, print_config(opened.settings));
  const int own_precision = gather(ranks, opened.own_precision ? 1 : 0)[0];
  settings_ = agree_on(ranks, [&] { return settings_from_string(text, checkpoint_); });
  if (own_precision == 0 && settings_.run.precision != Precision::kFp32 &&
      !agree_on_device(ranks, topology(), settings_.run.device).cuda) {
    if (is_first())
      log_info("the encoder was trained with run.precision: {}; computing in fp32 on this CPU{}",
               enum_name(settings_.run.precision),
               settings_.run.precision == Precision::kBf16 && why_no_bfloat16().empty()
                   ? "; use --set run.precision=bf16 for bf16"
                   : "");
    settings_.run.precision = Precision::kFp32;
  }
}

void TrainedEncoder::start_device() {
  const DeviceDecision decision = choose_device(settings_, topology(), runtime_.host());
  Settings any_ranks = settings_;
  any_ranks.train.reduction = Reduction::kFastest;  // no sum over ranks, so any number of ranks works
  runtime_.start_device(decision, any_ranks);
  if (const auto warning = binding_warning(topology(), settings_.run.threads); warning && is_first())
    log_warning("{}", *warning);
}

void TrainedEncoder::make_model(int64_t batch) {
  const int64_t unit = unit_images(settings_);
  const bool cpu = context().context.device().is_cpu();
  // One unit per thread, but at most the memory of a training step.
  const int64_t usual = cpu ? unit * std::min<int64_t>(context().context.threads(), settings_.train.shards)
                            : std::max(unit, std::min(kGpuCallImages, unit * settings_.train.shards));
  const int64_t local = (std::max<int64_t>(batch > 0 ? batch : usual, 1) + unit - 1) / unit;
  geometry_ = {.shards = local * topology().size,
               .local_shards = local,
               .first_shard = local * topology().rank,
               .images_per_shard = unit / 2};
  const RunContext run = context();
  model_ = std::make_unique<Model>(
      run.context, run.collectives, geometry_, settings_.model, settings_.data.image_size, settings_.run.seed,
      PlanChoices{.algorithm = plans_.otherwise, .before = plans_.names, .share = [&](const std::string& mine) {
                    runtime_.heartbeat().beat();
                    return broadcast_text(run.host, mine);
                  }});
  if (cpu && is_first() && lack_winograd_of(plans_.names, read_plan_names(model_->describe_plans())))
    log_info(
        "the encoder was trained with Winograd convolutions, which this processor or its oneDNN lacks; using direct "
        "ones, equal up to rounding");
}

void TrainedEncoder::load_weights() {
  const RunContext run = context();
  HostTensors tensors(run.context.device(), named_tensors(model_->store()), HostTensors::Memory::kShared);
  agree_on(run.host, [&] {
    if (is_first()) load_checkpoint(*file_, tensors.all(), LoadWhat::kWeights, beat());
    file_.reset();
  });
  tensors.broadcast(run.host, beat());
}

int64_t TrainedEncoder::width(EncoderOutput output) const {
  return output == EncoderOutput::kRepresentation ? model_->representation_size() : settings_.model.projector.output;
}

std::unique_ptr<Dataset> TrainedEncoder::open(Split split) const {
  auto dataset = agree_on(context().host, [&] { return open_dataset(settings_.data, split, beat()); });
  require_same(*dataset, name_of(split));
  return dataset;
}

std::unique_ptr<Dataset> TrainedEncoder::open_bank() const {
  auto dataset = agree_on(context().host, [&] { return simclr::open_bank(settings_.data, beat()); });
  if (!dataset) return open(Split::kTrain);
  require_same(*dataset, name_of(Split::kBank));
  return dataset;
}

void TrainedEncoder::require_same(const Dataset& dataset, const char* name) const {
  require_equal(context().host, ExitCode::kData, fmt::format("{} data", name), dataset.fingerprint(beat()),
                "give every host the same files");
}

const ViewParams& TrainedEncoder::view() {
  if (view_) return *view_;
  const bool given = !settings_.views.normalize.mean.empty();
  const ChannelStatistics none{.mean = {0, 0, 0}, .std = {1, 1, 1}};
  auto params = std::make_unique<ViewParams>(make_view_params(settings_.views, settings_.data.image_size, none));
  const auto found = header_.environment.find(kNormalizationKey);
  if (!given && (found == header_.environment.end() || !read_normalization(found->second, *params))) {
    if (is_first()) log_info("the checkpoint has no normalization statistics; computing them from data.path");
    const auto images = open(Split::kTrain);
    *params = agree_on(context().host, [&] {
      return make_view_params(settings_.views, settings_.data.image_size, channel_statistics(*images, beat()));
    });
  }
  view_ = std::move(params);
  return *view_;
}

FeatureSource TrainedEncoder::feature_source(const Dataset& dataset, EncoderOutput output, EvaluationSource& images) {
  return {.images = dataset.count(),
          .call_images = images.call_images(),
          .feature_size = width(output),
          .encode = [this, output, &images](int64_t first, int64_t) {
            runtime_.heartbeat().beat();
            const ConstMatrix h = model_->encode(images.load(first));
            return host_outputs_.fetch(context().context.device(),
                                       output == EncoderOutput::kRepresentation ? h : model_->project(h));
          }};
}

FeatureMatrix TrainedEncoder::encode(const Dataset& dataset, EncoderOutput output, const std::string& name) {
  FeatureMatrix all{Buffer(dataset.count() * width(output) * sizeof(float)), {}};
  all.view = {all.memory.as<float>().data(), dataset.count(), width(output), width(output)};
  encode_in_parts(dataset, output, name, [&](int64_t first, ConstFloatMatrix rows) {
    std::copy_n(rows.data, rows.elements(), all.view.row(first));
  });
  return all;
}

void TrainedEncoder::encode_in_parts(const Dataset& dataset, EncoderOutput output, const std::string& name,
                                     const std::function<void(int64_t first, ConstFloatMatrix rows)>& use) {
  const RunContext run = context();
  const auto images =
      make_evaluation_source(run.context, dataset, view(), geometry_.local_shards, geometry_.samples(), beat());
  const FeatureSource source = feature_source(dataset, output, *images);
  const int64_t cols = source.feature_size, ranks = topology().size, round = ranks * source.call_images;
  const Buffer own(source.call_images * cols * sizeof(float));  // [call_images, cols]
  const Buffer all(round * cols * sizeof(float));               // [W * call_images, cols]
  PartProgress progress(is_first(), name);
  for (int64_t begin = 0; begin < dataset.count(); begin += round) {
    const int64_t first = begin + topology().rank * source.call_images;
    agree_on(run.host, [&] {  // an image that one rank cannot read ends all ranks
      if (first >= dataset.count()) return;
      const int64_t count = std::min(source.call_images, dataset.count() - first);
      const ConstFloatMatrix rows = source.encode(first, count);
      for (int64_t i = 0; i < count; ++i) {
        if (!std::all_of(rows.row(i), rows.row(i) + cols, [](float x) { return std::isfinite(x); }))
          fail(ExitCode::kDiverged,
               "{}: an output for image {} is not finite: the training of this encoder has diverged; use an earlier "
               "checkpoint",
               name, first + i);
        std::copy_n(rows.row(i), cols, own.as<float>().data() + i * cols);
      }
    });
    run.host.all_gather(own.as<float>(), all.as<float>());
    const int64_t count = std::min(round, dataset.count() - begin);
    agree_on(run.host, [&] { use(begin, {all.as<float>().data(), count, cols, cols}); });
    progress.at(begin + count, dataset.count());
  }
}

}  // namespace simclr
