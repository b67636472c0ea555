#include "src/commands/embed.h"

#include <optional>

#include "src/base/file.h"
#include "src/base/log.h"
#include "src/comm/agreement.h"
#include "src/commands/trained_encoder.h"
#include "src/data/npy_header.h"
#include "src/train/knn_evaluation.h"

namespace simclr {
namespace {

void write_labels(const std::string& path, const Dataset& dataset) {
  std::vector<int64_t> labels;
  for (const int32_t label : labels_of(dataset)) labels.push_back(label);
  DurableFile file(path);
  const std::string header = format_npy_header("<i8", fmt::format("({},)", labels.size()));
  file.write(std::as_bytes(std::span(header)));
  file.write(std::as_bytes(std::span(labels)));
  file.commit();
}

}  // namespace

void embed(const EmbedCommand& command, Runtime& runtime) {
  TrainedEncoder encoder({command.encoder}, runtime);
  const Collectives& ranks = encoder.context().host;
  const bool first = ranks.rank() == 0;
  const Split split = command.test_split ? Split::kTest : Split::kTrain;
  const auto output = command.projector ? EncoderOutput::kEmbedding : EncoderOutput::kRepresentation;
  const auto dataset = encoder.open(split);
  const int64_t rows = dataset->count(), columns = encoder.width(output);

  std::optional<DurableFile> file;
  agree_on(encoder.context().host, [&] {
    if (!first) return;
    file.emplace(command.output);
    const std::string header = format_npy_header({.type = NpyType::kFloat32, .rows = rows, .columns = columns});
    file->write(std::as_bytes(std::span(header)));
  });
  encoder.encode_in_parts(*dataset, output, fmt::format("features of {} images", name_of(split)),
                          [&](int64_t, ConstFloatMatrix part) {
                            if (file) file->write(std::as_bytes(std::span(part.data, part.elements())));
                          });
  agree_on(encoder.context().host, [&] {
    if (!first) return;
    file->commit();
    if (!command.labels.empty()) write_labels(command.labels, *dataset);
    log_info("{}: {} of {} {} images, float32 [{}, {}]{}", command.output,
             command.projector ? "projector outputs" : "representations", rows, name_of(split), rows, columns,
             command.labels.empty() ? "" : fmt::format("; {}: labels, int64 [{}]", command.labels, rows));
  });
}

}  // namespace simclr
