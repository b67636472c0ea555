// For every key a good value that differs from its default, and a value of a wrong type; shared by tests that walk the
// table. key_table_test holds both lists to the table.
#pragma once

#include <map>
#include <string>

namespace simclr {

struct KeyValues {
  std::string other;       // YAML
  std::string wrong_type;  // YAML
};

inline const std::map<std::string, KeyValues>& key_values() {
  static const std::map<std::string, KeyValues> values = {
      {"run.name", {"other", "[a]"}},
      {"run.output_dir", {"/elsewhere", "{a: b}"}},
      {"run.seed", {"18446744073709551615", "1.5"}},
      {"run.device", {"cpu", "tpu"}},
      {"run.precision", {"bf16", "16"}},
      {"run.threads", {"2", "automatic"}},
      {"data.format", {"cifar10", "[cifar10]"}},
      {"data.path", {"/data", "[/data]"}},
      {"data.image_size", {"48", "48px"}},
      {"data.workers", {"0", "true"}},
      {"data.on_error", {"skip", "ignore"}},
      {"data.max_pixels", {"5000", "1e9 px"}},
      {"data.synthetic.train_images", {"5000", "many"}},
      {"data.synthetic.test_images", {"1000", "1e3"}},
      {"views.crop_scale", {"[0.08, 0.9]", "0.08"}},
      {"views.crop_ratio", {"[0.5, 2]", "[0.5, 1, 2]"}},
      {"views.flip", {"0", "never"}},
      {"views.jitter.probability", {"0.5", "50 %"}},
      {"views.jitter.brightness", {"0.8", "[0.8]"}},
      {"views.jitter.contrast", {"0.8", "high"}},
      {"views.jitter.saturation", {"0.8", "\"0.8\""}},
      {"views.jitter.hue", {"0.2", "yes"}},
      {"views.grayscale", {"0.5", "no"}},
      {"views.blur.probability", {"0.5", "on"}},
      {"views.blur.sigma", {"[0.5, 1]", "[0.5, big]"}},
      {"views.normalize.mean", {"[0.1, 0.2, 0.3]", "0.5"}},
      {"views.normalize.std", {"[0.3, 0.2, 0.1]", "[a, b, c]"}},
      {"model.encoder.depth", {"10", "resnet10"}},
      {"model.encoder.width", {"16", "16.5"}},
      {"model.encoder.stem", {"imagenet", "7"}},
      {"model.encoder.zero_init_residual", {"true", "yes"}},
      {"model.projector.layers", {"3", "[3]"}},
      {"model.projector.hidden", {"64", "064"}},
      {"model.projector.output", {"64", "wide"}},
      {"model.projector.batch_norm", {"false", "0"}},
      {"model.batch_norm.views", {"separate", "both"}},
      {"model.batch_norm.momentum", {"0.2", ".inf"}},
      {"model.batch_norm.eps", {"1e-3", "small"}},
      {"model.convolution", {"direct", "fft"}},
      {"model.init_from", {"encoder.safetensors", "[encoder.safetensors]"}},
      {"loss.type", {"barlow_twins", "ntxent"}},
      {"loss.algorithm", {"streaming", "stream"}},
      {"loss.temperature", {"0.1", "hot"}},
      {"loss.margin", {"0.1", ".nan"}},
      {"loss.decoupled", {"true", "1"}},
      {"loss.products", {"bf16", "tf32"}},
      {"loss.lambda", {"0.0051", "small"}},
      {"loss.scale", {"0.024", "1/40"}},
      {"optimizer.type", {"adamw", "adam"}},
      {"optimizer.base_lr", {"0.1", "1_0"}},
      {"optimizer.lr_scaling", {"sqrt", "2"}},
      {"optimizer.momentum", {"0.5", "{}"}},
      {"optimizer.nesterov", {"true", "True"}},
      {"optimizer.betas", {"[0.8, 0.99]", "[0.8]"}},
      {"optimizer.eps", {"1e-6", "e-6"}},
      {"optimizer.weight_decay", {"0", "none"}},
      {"optimizer.trust_coefficient", {"0.01", "small"}},
      {"optimizer.decay_1d", {"true", "on"}},
      {"schedule.warmup_epochs", {"2.5", "2 epochs"}},
      {"schedule.type", {"constant", "linear"}},
      {"schedule.milestones", {"[60, 80.5]", "60"}},
      {"schedule.gamma", {"0.2", "a fifth"}},
      {"train.global_batch", {"256", "2^8"}},
      {"train.shards", {"4", "four"}},
      {"train.epochs", {"20", "20.0"}},
      {"train.max_steps", {"7", "0x7"}},
      {"train.stop_at_step", {"7", "[]"}},
      {"train.reduction", {"fastest", "fast"}},
      {"train.check_every", {"7", "never"}},
      {"train.timeout_s", {"60.5", "60s"}},
      {"train.max_minutes", {"90", "1:30"}},
      {"checkpoint.every_epochs", {"2", "1/2"}},
      {"checkpoint.every_steps", {"7", "off"}},
      {"checkpoint.every_minutes", {"7.5", "10min"}},
      {"checkpoint.keep", {"1", "all"}},
      {"checkpoint.keep_best", {"true", "1"}},
      {"resume.allow", {"[epochs, schedule]", "epochs"}},
      {"evaluate.knn.every_epochs", {"0", "never"}},
      {"evaluate.knn.k", {"200", "2e2"}},
      {"evaluate.knn.temperature", {"0.07", "low"}},
      {"log.every_steps", {"1", "false"}},
      {"log.tensorboard", {"false", "0"}},
      {"log.report", {"false", "never"}},
  };
  return values;
}

}  // namespace simclr
