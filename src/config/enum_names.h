// The names of the enum values of the settings in YAML, on the command line and in the log.
#pragma once

#include <array>
#include <string_view>

#include "kernels/common/error.h"
#include "src/config/settings.h"

namespace simclr {

template <typename E>
struct EnumName {
  E value;
  std::string_view name;
};

// kEnumNames<E>: all values of E in the order in which messages list them.
template <typename E>
inline constexpr std::array<EnumName<E>, 0> kEnumNames = {};

template <>
inline constexpr auto kEnumNames<DeviceChoice> = std::to_array<EnumName<DeviceChoice>>({{DeviceChoice::kAuto, "auto"},
                                                                                        {DeviceChoice::kCpu, "cpu"},
                                                                                        {DeviceChoice::kCuda, "cuda"}});
template <>
inline constexpr auto kEnumNames<Precision> = std::to_array<EnumName<Precision>>({{Precision::kFp32, "fp32"},
                                                                                  {Precision::kTf32, "tf32"},
                                                                                  {Precision::kBf16, "bf16"}});
template <>
inline constexpr auto kEnumNames<DataType> = std::to_array<EnumName<DataType>>({{DataType::kFloat32, "fp32"},
                                                                                {DataType::kBfloat16, "bf16"}});
template <>
inline constexpr auto kEnumNames<DataFormat> =
    std::to_array<EnumName<DataFormat>>({{DataFormat::kSynthetic, "synthetic"},
                                         {DataFormat::kCifar10, "cifar10"},
                                         {DataFormat::kCifar100, "cifar100"},
                                         {DataFormat::kMnist, "mnist"},
                                         {DataFormat::kStl10, "stl10"},
                                         {DataFormat::kImageFolder, "image_folder"},
                                         {DataFormat::kPacked, "packed"}});
template <>
inline constexpr auto kEnumNames<OnDataError> = std::to_array<EnumName<OnDataError>>({{OnDataError::kFail, "fail"},
                                                                                      {OnDataError::kSkip, "skip"}});
template <>
inline constexpr auto kEnumNames<Stem> = std::to_array<EnumName<Stem>>({{Stem::kCifar, "cifar"},
                                                                        {Stem::kImagenet, "imagenet"}});
template <>
inline constexpr auto kEnumNames<ConvolutionAlgorithm> =
    std::to_array<EnumName<ConvolutionAlgorithm>>({{ConvolutionAlgorithm::kAuto, "auto"},
                                                   {ConvolutionAlgorithm::kDirect, "direct"},
                                                   {ConvolutionAlgorithm::kWinograd, "winograd"}});
template <>
inline constexpr auto kEnumNames<BatchNormViews> = std::to_array<EnumName<BatchNormViews>>(
    {{BatchNormViews::kJoint, "joint"}, {BatchNormViews::kSeparate, "separate"}});
template <>
inline constexpr auto kEnumNames<LossType> =
    std::to_array<EnumName<LossType>>({{LossType::kInfoNce, "infonce"}, {LossType::kBarlowTwins, "barlow_twins"}});
template <>
inline constexpr auto kEnumNames<LossAlgorithm> = std::to_array<EnumName<LossAlgorithm>>(
    {{LossAlgorithm::kAuto, "auto"}, {LossAlgorithm::kEinsum, "einsum"}, {LossAlgorithm::kStreaming, "streaming"}});
template <>
inline constexpr auto kEnumNames<OptimizerType> = std::to_array<EnumName<OptimizerType>>(
    {{OptimizerType::kSgd, "sgd"}, {OptimizerType::kAdamW, "adamw"}, {OptimizerType::kLars, "lars"}});
template <>
inline constexpr auto kEnumNames<LrScaling> = std::to_array<EnumName<LrScaling>>({{LrScaling::kNone, "none"},
                                                                                  {LrScaling::kLinear, "linear"},
                                                                                  {LrScaling::kSqrt, "sqrt"}});
template <>
inline constexpr auto kEnumNames<ScheduleType> = std::to_array<EnumName<ScheduleType>>(
    {{ScheduleType::kCosine, "cosine"}, {ScheduleType::kConstant, "constant"}, {ScheduleType::kStep, "step"}});
template <>
inline constexpr auto kEnumNames<Reduction> = std::to_array<EnumName<Reduction>>({{Reduction::kOrdered, "ordered"},
                                                                                  {Reduction::kFastest, "fastest"}});

// The YAML spelling of a value. A value without a name is a defect of the program.
template <typename E>
std::string_view enum_name(E value) {
  for (const EnumName<E>& entry : kEnumNames<E>) {
    if (entry.value == value) return entry.name;
  }
  fail(ExitCode::kOther, "internal error: an enum of the settings has no name for value {}", static_cast<int>(value));
}

}  // namespace simclr
