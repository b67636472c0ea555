// Where the time of a training step goes: spans that layers open around their ops, with the work that each stands for.
// Without a profiler (a null pointer in Context) a span costs one test. For the CPU, where an op is done when it
// returns; main thread only. What is made of the numbers is src/metrics' business.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace simclr {

enum class OpKind {
  kData,
  kConvolution,
  kBatchNorm,
  kElementwise,
  kMatrixProduct,
  kLoss,
  kCollective,
  kOptimizer,
  kOther
};

// What an op has to do by its shapes alone: a multiply-add counts as two; bytes are those of its operands, each as
// often as the op passes over it.
struct Work {
  double flops = 0, bytes = 0;
};

struct OpName {
  OpKind kind = OpKind::kOther;
  std::string_view layer;  // layer1.0.conv1
  std::string_view op;     // forward
};

class Profiler {
 public:
  struct Row {
    OpKind kind = OpKind::kOther;
    std::string layer, op;
    int64_t spans = 0;            // in all steps
    Work work;                    // in all steps
    std::vector<double> seconds;  // of each step, without the spans inside
  };
  struct Span {
    size_t row = 0;
    double begin_s = 0, end_s = 0, inner_s = 0;  // inner_s: of the spans inside
    Work work;
  };
  struct Step {
    int64_t number = 0;  // from 1
    double begin_s = 0, end_s = 0;
  };

  // What is in no open step is not recorded. number counts from 1.
  void begin_step(int64_t number);
  void end_step();
  bool recording() const { return recording_; }

  void open(const OpName& name, const Work& work);
  void close() noexcept;

  // Ended steps; rows in the order of their first spans. Times by monotonic_seconds().
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Row>& rows() const { return rows_; }
  const std::vector<Span>& spans() const { return spans_; }

 private:
  size_t row_of(const OpName& name);

  bool recording_ = false;
  std::vector<Step> steps_;
  std::vector<Row> rows_;
  std::vector<Span> spans_;
  std::vector<size_t> open_;  // places in spans_, the innermost last
};

// The scope of one op. work() is asked only while somebody records.
class ProfileSpan {
 public:
  template <typename WorkOf>
  ProfileSpan(Profiler* profiler, const OpName& name, WorkOf&& work)
      : profiler_(profiler != nullptr && profiler->recording() ? profiler : nullptr) {
    if (profiler_ != nullptr) profiler_->open(name, work());
  }
  ProfileSpan(Profiler* profiler, const OpName& name) : ProfileSpan(profiler, name, [] { return Work{}; }) {}
  ~ProfileSpan() {
    if (profiler_ != nullptr) profiler_->close();
  }
  ProfileSpan(const ProfileSpan&) = delete;
  ProfileSpan& operator=(const ProfileSpan&) = delete;

 private:
  Profiler* profiler_;
};

}  // namespace simclr
