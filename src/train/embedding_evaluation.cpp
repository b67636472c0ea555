#include "src/train/embedding_evaluation.h"

#include "src/augment/pair_source.h"
#include "src/comm/agreement.h"
#include "src/evaluate/feature_extractor.h"

namespace simclr {

EmbeddingEvaluation::EmbeddingEvaluation(Parts& parts, const Site& site, const Beat& beat)
    : site_(site),
      model_(parts.model),
      host_exec_{.threads = site.context.threads()},
      columns_(parts.settings.model.projector.output),
      views_(2 * std::min(parts.test_set->count(), kMostImages)),
      source_(make_pair_source(site.context, *parts.test_set, parts.view, parts.settings.run.seed,
                               spread_images(parts.test_set->count(), kMostImages), parts.geometry.local_shards,
                               parts.geometry.samples(), beat)) {}

EmbeddingStatistics EmbeddingEvaluation::run(const Beat& beat) {
  const FeatureMatrix z =
      extract_features(site_.host, {.images = views_,
                                    .call_images = source_->call_images(),
                                    .feature_size = columns_,
                                    .encode = [&](int64_t first, int64_t) {
                                      beat();
                                      const ConstMatrix h = model_.encode(source_->load(first));
                                      return host_embeddings_.fetch(site_.context.device(), model_.project(h));
                                    }});
  return agree_on(site_.host, [&] {
    normalize_features(host_exec_, z.view);
    return measure_embeddings(host_exec_, z.view, beat);
  });
}

std::string describe(const EmbeddingStatistics& s, int64_t columns) {
  return fmt::format("alignment {:.3f}, uniformity {:.2f}, effective rank {:.1f} of {}", s.alignment, s.uniformity,
                     s.effective_rank, columns);
}

}  // namespace simclr
