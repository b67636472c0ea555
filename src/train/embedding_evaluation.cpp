#include "src/train/embedding_evaluation.h"

#include "src/augment/pair_source.h"
#include "src/comm/agreement.h"
#include "src/evaluate/feature_extractor.h"

namespace simclr {

EmbeddingEvaluation::EmbeddingEvaluation(TrainingSetup& setup, const RunContext& run, const Beat& beat)
    : run_(run),
      model_(setup.model),
      host_exec_{.threads = run.context.threads()},
      columns_(setup.settings.model.projector.output),
      views_(2 * std::min(setup.test_set->count(), kMostImages)),
      source_(make_pair_source(run.context, *setup.test_set, setup.view, setup.settings.run.seed,
                               spread_images(setup.test_set->count(), kMostImages), setup.geometry.local_shards,
                               setup.geometry.samples(), beat)) {}

EmbeddingStatistics EmbeddingEvaluation::run(const Beat& beat, const std::function<void()>& before_call) {
  const FeatureMatrix z =
      extract_features(run_.host, {.images = views_,
                                   .call_images = source_->call_images(),
                                   .feature_size = columns_,
                                   .encode =
                                       [&](int64_t first, int64_t) {
                                         beat();
                                         const ConstMatrix h = model_.encode(source_->load(first));
                                         return host_embeddings_.fetch(run_.context.device(), model_.project(h));
                                       },
                                   .before_call = before_call});
  return agree_on(run_.host, [&] {
    normalize_features(host_exec_, z.view);
    return measure_embeddings(host_exec_, z.view, beat);
  });
}

std::string describe(const EmbeddingStatistics& s, int64_t columns) {
  return fmt::format("alignment {:.3f}, uniformity {:.2f}, effective rank {:.1f} of {}", s.alignment, s.uniformity,
                     s.effective_rank, columns);
}

}  // namespace simclr
