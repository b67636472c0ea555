// The loss of infonce.h as plain loops in double over the whole batch, without a distributed part: what the fast one
// is held to. Allocates; not for a training step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace simclr {

struct InfoNceReferenceSettings {
  int64_t batch = 0;    // B
  int64_t columns = 0;  // C
  double temperature = 0.5;
  double margin = 0.0;
  bool decoupled = false;
};

struct InfoNceReference {
  double loss = 0;             // L, the global mean
  std::vector<double> losses;  // loss_i [2B]
  std::vector<double> grad_e;  // dL/de [2B, C], as anchor and as key
  std::vector<double> grad_z;  // dL/dz [2B, C]; only from infonce_reference
};

// From embeddings e [2B, C], row-major, rows [view 1 of 0..B-1 ; view 2 of 0..B-1]; taken as they are, not normalized.
InfoNceReference infonce_reference_from_embeddings(std::span<const double> e, const InfoNceReferenceSettings& settings);

// From projector outputs z [2B, C] in the same order: e = z / max(||z||, 1e-12).
InfoNceReference infonce_reference(std::span<const double> z, const InfoNceReferenceSettings& settings);

}  // namespace simclr
