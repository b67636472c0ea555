#include "kernels/conv2d/cpu_conv2d_choice.h"

#include <algorithm>
#include <string_view>

#include "kernels/common/onednn.h"

namespace simclr::conv2d {
namespace {

constexpr std::string_view kBetween = "; ";
constexpr std::string_view kNames[] = {"direct", "winograd", "winograd_shared", "gemm"};  // by CpuAlgorithm

std::string_view name_of(CpuAlgorithm algorithm) {
  return kNames[static_cast<size_t>(algorithm)];
}

bool has_pass(const Conv2dParams& p, Pass pass) {
  return !p.input_is_images || pass != Pass::kBackwardData;
}

}  // namespace

CpuCandidates candidates_of(const Conv2dParams& p, DataType stored, bool library_has_winograd) {
  const bool wanted = p.algorithm == ConvolutionAlgorithm::kWinograd, bf16 = stored == DataType::kBfloat16;
  if (wanted && bf16)
    fail(ExitCode::kDevice,
         "model.convolution: winograd, but there is no Winograd convolution in bf16; write auto or direct, or "
         "run.precision: fp32");
  if (wanted && !library_has_winograd)
    fail(ExitCode::kDevice,
         "model.convolution: winograd, but oneDNN {}.{} has no Winograd convolution for this processor; write auto or "
         "direct",
         dnnl::version()->major, dnnl::version()->minor);
  const bool may = p.algorithm != ConvolutionAlgorithm::kDirect && !bf16 && library_has_winograd;
  CpuCandidates candidates;
  for (const Pass pass : kPasses) {
    auto& list = candidates[index_of(pass)];
    if (may && is_winograd_shape(p)) {
      if (pass != Pass::kBackwardWeights && (wanted || shared_winograd_is_faster(p)))
        list.push_back(CpuAlgorithm::kWinogradShared);
      if (wanted || winograd_is_faster(p, pass)) list.push_back(CpuAlgorithm::kWinograd);
    }
    list.insert(list.end(), {CpuAlgorithm::kDirect, CpuAlgorithm::kGemm, CpuAlgorithm::kDirect});
  }
  return candidates;
}

CpuCandidates candidates_of(const Conv2dParams& p, const std::string& choice) {
  CpuCandidates candidates;
  std::string_view rest = choice;
  bool good = true;
  for (const Pass pass : kPasses) {
    if (!has_pass(p, pass)) continue;
    const size_t end = std::min(rest.find(kBetween), rest.size());
    const auto* const name = std::find(std::begin(kNames), std::end(kNames), rest.substr(0, end));
    const auto algorithm = static_cast<CpuAlgorithm>(name - std::begin(kNames));
    good = good && name != std::end(kNames) &&
           (pass != Pass::kBackwardWeights || algorithm != CpuAlgorithm::kWinogradShared);
    candidates[index_of(pass)] = {algorithm};
    rest.remove_prefix(std::min(end + kBetween.size(), rest.size()));
  }
  if (!good || !rest.empty())
    fail(ExitCode::kDevice,
         "'{}' does not list the convolutions of a CPU, each of them {}; start one build on all ranks", choice,
         fmt::join(kNames, ", "));
  return candidates;
}

std::string choice_text(const Conv2dParams& p, const CpuAlgorithms& algorithms) {
  std::string text;
  for (const Pass pass : kPasses) {
    if (!has_pass(p, pass)) continue;
    text += text.empty() ? "" : kBetween;
    text += name_of(algorithms[index_of(pass)]);
  }
  return text;
}

}  // namespace simclr::conv2d
