#include "src/train/memory_need.h"

#include <algorithm>

#include "kernels/common/numbers.h"
#include "src/augment/view_loader.h"
#include "src/base/memory.h"
#include "src/device/choose_device.h"

namespace simclr {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

int64_t state_bytes(const TrainingSetup& p) {
  int64_t elements = 0;
  for (const auto& tensor : p.optimizer->state()) {
    int64_t product = 1;
    for (const int64_t side : tensor.shape) product *= side;
    elements += product;
  }
  for (const auto& buffer : p.model.store().buffers()) elements += buffer.elements;
  return (elements + p.model.store().element_count()) * kFloatBytes;
}

int64_t batch_bytes(const TrainingSetup& p) {
  return p.geometry.local_rows() * 3 * p.view.size * p.view.size * kFloatBytes;
}

// The features of bank and test images on every rank, and three batches: bank, test and embeddings.
int64_t evaluation_bytes(const TrainingSetup& p) {
  if (p.settings.evaluate.knn.every_epochs == 0) return 0;
  const int64_t images = p.bank().count() + p.test_set->count();
  return images * p.model.representation_size() * kFloatBytes + 3 * batch_bytes(p);
}

bool stores_products(const TrainingSetup& p) {
  return p.settings.loss.type == LossType::kInfoNce && p.settings.loss.algorithm != LossAlgorithm::kStreaming;
}

std::string megabytes(int64_t bytes) {
  return fmt::format("{:.0f}", as_double(bytes) * 1e-6);
}

}  // namespace

MemoryNeed memory_need(const TrainingSetup& p) {
  MemoryNeed need;
  const bool cpu = p.context.device().is_cpu();
  const int64_t gradients = p.model.store().gradients().size_bytes(), state = state_bytes(p);
  const int64_t values = p.model.store().element_count() * kFloatBytes;
  need.feature_maps = p.model.activation_bytes();
  need.parameters = state + gradients;
  need.loss = p.loss->memory_bytes();
  need.scratch = p.context.allocated_bytes() - need.feature_maps - need.parameters - need.loss;
  // On the CPU the weights are initialized: they are resident, and counted above.
  const int64_t resident = resident_bytes();
  need.program = resident - (cpu ? values : 0);
  need.file_pages = std::max<int64_t>(resident - anonymous_bytes(), 0);
  need.batches = batch_slots(p.workers, batch_bytes(p)) * batch_bytes(p);
  need.checkpoint = state;
  need.evaluation = evaluation_bytes(p);
  return need;
}

MemoryNeed scale_batch(const MemoryNeed& need, const TrainingSetup& p, int64_t global_batch) {
  const double factor = as_double(global_batch) / as_double(p.settings.train.global_batch);
  const auto scaled = [](int64_t bytes, double by) { return static_cast<int64_t>(as_double(bytes) * by); };
  MemoryNeed other = need;
  other.feature_maps = scaled(need.feature_maps, factor);
  other.batches = scaled(need.batches, factor);
  other.loss = scaled(need.loss, stores_products(p) ? factor * factor : factor);
  other.scratch = scaled(need.scratch, std::max(factor, 1.0));
  return other;
}

MemoryLimit memory_limit(const TrainingSetup& p, const Topology& topology) {
  MemoryLimit limit;
  const int64_t available = available_memory_bytes();
  if (available > 0) limit.host = available / topology.local_size + resident_bytes();
  // What the setup has allocated is no longer free.
  if (!p.context.device().is_cpu()) limit.device = free_gpu_bytes() + p.context.allocated_bytes();
  return limit;
}

bool fits(const MemoryNeed& need, const MemoryLimit& limit, const TrainingSetup& p) {
  const bool cpu = p.context.device().is_cpu();
  const int64_t host = need.on_host() + (cpu ? need.on_device() : 0);
  return (limit.host == 0 || host <= limit.host) && (cpu || need.on_device() <= limit.device);
}

int64_t largest_batch(const MemoryNeed& need, const MemoryLimit& limit, const TrainingSetup& p) {
  int64_t fitting = 0, beyond = p.train_set->count() / p.geometry.shards + 1;  // images a shard
  while (beyond - fitting > 1) {
    const int64_t middle = fitting + (beyond - fitting) / 2;
    (fits(scale_batch(need, p, middle * p.geometry.shards), limit, p) ? fitting : beyond) = middle;
  }
  return fitting * p.geometry.shards;
}

std::string describe_memory(const TrainingSetup& p, const Topology& topology) {
  const MemoryNeed need = memory_need(p);
  const MemoryLimit limit = memory_limit(p, topology);
  const std::string device =
      fmt::format("feature maps {}, parameters and optimizer {}, loss {}, scratch {}", megabytes(need.feature_maps),
                  megabytes(need.parameters), megabytes(need.loss), megabytes(need.scratch));
  const std::string host = fmt::format("views {}, checkpoint {}, k-NN {}, program and data {}", megabytes(need.batches),
                                       megabytes(need.checkpoint), megabytes(need.evaluation), megabytes(need.program));
  const bool cpu = p.context.device().is_cpu();
  std::string text = cpu ? fmt::format("peak memory per rank: {} MB: {}, {}",
                                       megabytes(need.on_host() + need.on_device()), device, host)
                         : fmt::format("peak memory per rank: {} MB of the GPU: {}; {} MB of the host: {}",
                                       megabytes(need.on_device()), device, megabytes(need.on_host()), host);
  if (cpu ? limit.host == 0 : limit.device == 0) return text;
  const int64_t largest = largest_batch(need, limit, p);
  const bool by_data = largest > 0 && largest + p.geometry.shards > p.train_set->count();
  return text + fmt::format("; {} MB available, {}", megabytes(cpu ? limit.host : limit.device),
                            largest == 0 ? "too little for any batch"
                            : by_data    ? fmt::format("enough for a global batch of the whole data set, {}", largest)
                                         : fmt::format("enough for a global batch of at most {}", largest));
}

}  // namespace simclr
