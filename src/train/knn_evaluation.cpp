#include "src/train/knn_evaluation.h"

#include "src/comm/agreement.h"

namespace simclr {
namespace {

std::vector<int32_t> labels_of(const Dataset& dataset) {
  std::vector<int32_t> labels(static_cast<size_t>(dataset.count()));
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = dataset.label(static_cast<int64_t>(i));
  return labels;
}

}  // namespace

KnnEvaluation::KnnEvaluation(const Parts& parts, Context& context, Collectives& collectives, Model& model)
    : context_(context),
      collectives_(collectives),
      model_(model),
      params_{.k = parts.settings.evaluate.knn.k, .temperature = parts.settings.evaluate.knn.temperature},
      train_{*parts.train_set, EvaluationLoader(*parts.train_set, parts.view, context.threads()),
             labels_of(*parts.train_set)},
      test_{*parts.test_set, EvaluationLoader(*parts.test_set, parts.view, context.threads()),
            labels_of(*parts.test_set)} {
  const int64_t size = parts.view.size;
  images_ = {nullptr, parts.geometry.local_shards, parts.geometry.samples(), 3, size, size};
  images_memory_ = context.allocate_elements<float>(images_.elements());
  images_.data = images_memory_.as<float>().data();
}

FeatureMatrix KnnEvaluation::features_of(Split& split, const Beat& beat) {
  FeatureMatrix features = extract_features(collectives_, {.images = split.dataset.count(),
                                                           .call_images = images_.shards * images_.samples,
                                                           .feature_size = model_.representation_size(),
                                                           .encode = [&](int64_t first, int64_t) {
                                                             beat();
                                                             split.loader.fill(first, images_);
                                                             return model_.encode(images_);
                                                           }});
  agree_on(collectives_, [&] { normalize_features(context_.exec(), features.view); });  // all fail alike, or none
  return features;
}

KnnResult KnnEvaluation::run(const Beat& beat) {
  const FeatureMatrix bank = features_of(train_, beat), queries = features_of(test_, beat);  // [N, D], [M, D]
  beat();
  return evaluate_knn(context_.exec(), collectives_, {bank.view, train_.labels}, {queries.view, test_.labels}, params_,
                      beat);
}

std::string KnnEvaluation::describe(const KnnResult& result) const {
  return simclr::describe(result, params_);
}

}  // namespace simclr
