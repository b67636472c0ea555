#include "src/train/knn_evaluation.h"

#include "src/comm/agreement.h"

namespace simclr {

std::vector<int32_t> labels_of(const Dataset& dataset) {
  std::vector<int32_t> labels(dataset.count());
  for (int64_t i = 0; i < dataset.count(); ++i) labels[i] = dataset.label(i);
  return labels;
}

std::string reason_without_knn(const TrainingSetup& setup) {
  if (!setup.bank().has_labels()) return "the training images have no labels";
  if (setup.test_set->count() == 0) return "there are no test images (docs/data.md describes where to put them)";
  if (!setup.test_set->has_labels()) return "the test images have no labels";
  return "";
}

KnnEvaluation::KnnEvaluation(TrainingSetup& setup, const RunContext& run, const Beat& beat)
    : run_(run),
      model_(setup.model),
      host_exec_{.threads = run.context.threads()},
      params_{.k = setup.settings.evaluate.knn.k, .temperature = setup.settings.evaluate.knn.temperature},
      bank_{setup.bank(), {}, labels_of(setup.bank())},
      test_{*setup.test_set, {}, labels_of(*setup.test_set)} {
  for (Split* split : {&bank_, &test_}) {
    split->source = make_evaluation_source(run.context, split->dataset, setup.view, setup.geometry.local_shards,
                                           setup.geometry.samples(), beat);
  }
  if (setup.test_set->count() >= 2) embeddings_.emplace(setup, run, beat);
}

FeatureMatrix KnnEvaluation::features_of(Split& split, const Beat& beat, const std::function<void()>& before_call) {
  FeatureMatrix features = extract_features(run_.host, {.images = split.dataset.count(),
                                                        .call_images = split.source->call_images(),
                                                        .feature_size = model_.representation_size(),
                                                        .encode =
                                                            [&](int64_t first, int64_t) {
                                                              beat();
                                                              const ConstMatrix h =
                                                                  model_.encode(split.source->load(first));
                                                              return host_features_.fetch(run_.context.device(), h);
                                                            },
                                                        .before_call = before_call});
  agree_on(run_.host, [&] { normalize_features(host_exec_, features.view); });  // an error of one ends all
  return features;
}

KnnResult KnnEvaluation::run(const Beat& beat, const SeeFeatures& see, const std::function<void()>& before_call) {
  const FeatureMatrix bank = features_of(bank_, beat, before_call);     // [N, D]
  const FeatureMatrix queries = features_of(test_, beat, before_call);  // [M, D]
  beat();
  if (see)
    see({.step = 0, .bank_set = bank_.dataset, .test_set = test_.dataset, .bank = bank.view, .queries = queries.view});
  return evaluate_knn(host_exec_, run_.host, {bank.view, bank_.labels}, {queries.view, test_.labels}, params_, beat);
}

std::optional<EmbeddingStatistics> KnnEvaluation::measure_embeddings(const Beat& beat,
                                                                     const std::function<void()>& before_call) {
  if (!embeddings_) return std::nullopt;
  return embeddings_->run(beat, before_call);
}

std::string KnnEvaluation::describe(const KnnResult& result) const {
  return simclr::describe(result, params_);
}

}  // namespace simclr
