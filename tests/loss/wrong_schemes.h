// The ways in which contrastive losses of the field lose or scale gradients between ranks, each as a wrapper of
// Collectives, so that it is the product's own loss that computes with them. What they have in common: training
// continues, the loss falls, and nothing shows it. wrong_schemes_test.cpp measures each and must catch it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "tests/harness/thread_collectives.h"

namespace simclr::test {

inline std::span<float> floats(TypedSpan s) {
  return {static_cast<float*>(s.data), static_cast<size_t>(s.count)};
}
inline std::span<const float> floats(ConstTypedSpan s) {
  return {static_cast<const float*>(s.data), static_cast<size_t>(s.count)};
}

// The backward of all_gather keeps this rank's slice of its own gradient: what other ranks' anchors owe to this rank's
// keys is lost. (A gather layer without an all-reduce in its backward.)
class OwnSliceOnly : public ForwardingCollectives {
 public:
  using ForwardingCollectives::ForwardingCollectives;
  void reduce_scatter(ConstTypedSpan send, TypedSpan receive) override {
    std::ranges::copy(floats(send).subspan(rank() * receive.count, receive.count), floats(receive).begin());
  }
};

// Gathered keys carry no gradient at all. (A plain all_gather, which automatic differentiation does not see through.)
class KeysDetached : public ForwardingCollectives {
 public:
  using ForwardingCollectives::ForwardingCollectives;
  void reduce_scatter(ConstTypedSpan, TypedSpan receive) override { std::ranges::fill(floats(receive), 0.0F); }
};

// The key side is summed and then multiplied by `factor`: W where a sum is taken twice, 1/W where it is averaged.
class ScaledKeySide : public ForwardingCollectives {
 public:
  ScaledKeySide(Collectives& inner, float factor) : ForwardingCollectives(inner), factor_(factor) {}
  void reduce_scatter(ConstTypedSpan send, TypedSpan receive) override {
    inner().reduce_scatter(send, receive);
    for (float& x : floats(receive)) x *= factor_;
  }

 private:
  float factor_;
};

// For a loss that exchanges the logarithm of each anchor's denominator, not gradients: what other ranks' anchors owe to
// this rank's keys is multiplied by `factor`; 0 loses it.
class ScaledForeignAnchors : public ForwardingCollectives {
 public:
  ScaledForeignAnchors(Collectives& inner, double factor) : ForwardingCollectives(inner), factor_(factor) {}
  void all_gather(ConstTypedSpan send, TypedSpan receive) override {
    inner().all_gather(send, receive);
    if (receive.type != ElementType::kFloat64) return;
    auto* logs = static_cast<double*>(receive.data);
    for (int64_t k = 0; k < receive.count; ++k) {
      if (k / send.count != rank()) logs[k] -= std::log(factor_);
    }
  }

 private:
  double factor_;
};

// Sums of gradients come out multiplied by `factor`: 1/W where they are averaged although the loss is a global mean
// (the usual data-parallel wrapper), W where a loss is scaled up to make up for an averaging that does not happen.
class ScaledSums : public ForwardingCollectives {
 public:
  ScaledSums(Collectives& inner, float factor) : ForwardingCollectives(inner), factor_(factor) {}
  void ordered_sum(TypedSpan data) override {
    inner().ordered_sum(data);
    if (data.type != ElementType::kFloat32) return;
    for (float& x : floats(data)) x *= factor_;
  }

 private:
  float factor_;
};

// Rank 0 of 1: the loss sees the negatives of its own rank only. (Each process computes its own loss.)
class LocalNegatives : public ForwardingCollectives {
 public:
  using ForwardingCollectives::ForwardingCollectives;
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_gather(ConstTypedSpan send, TypedSpan receive) override {
    const size_t bytes = send.type == ElementType::kFloat64 ? sizeof(double) : sizeof(float);
    std::memcpy(receive.data, send.data, static_cast<size_t>(send.count) * bytes);
  }
  void ordered_sum(TypedSpan) override {}
  void reduce_scatter(ConstTypedSpan send, TypedSpan receive) override {
    std::ranges::copy(floats(send), floats(receive).begin());
  }
};

}  // namespace simclr::test
