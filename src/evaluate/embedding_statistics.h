// Label-free measures of the geometry of embeddings; e_ia is the unit-length embedding of view a of image i:
//   alignment       mean over i of |e_i1 - e_i2|^2
//                   0: the views of an image are one point
//   uniformity      log mean over pairs i < j, view by view, of exp(-2 |e_ia - e_ja|^2)
//                   -4: spread over the sphere; 0: all one point
//                   (Wang and Isola, "Understanding Contrastive Representation Learning through Alignment and
//                   Uniformity on the Hypersphere", ICML 2020, alpha = 2, t = 2)
//   effective rank  exp(-sum_k p_k log p_k), p_k = s_k / sum s, s the singular values of the matrix of all e_ia
//                   (Roy and Vetterli, "The Effective Rank", EUSIPCO 2007; on embeddings: Garrido et al., RankMe,
//                   2023). From 1, one direction alone, to the number of columns.
#pragma once

#include "kernels/common/exec.h"
#include "kernels/common/views.h"
#include "src/base/beat.h"

namespace simclr {

struct EmbeddingStatistics {
  double alignment = 0, uniformity = 0, effective_rank = 0;
};

// embeddings [2N, C], N >= 2, rows of unit length: 2i and 2i + 1 are the views of image i. Computed in double; no sum
// depends on the number of threads.
EmbeddingStatistics measure_embeddings(const CpuExec& exec, const ConstFloatMatrix& embeddings,
                                       const Beat& beat = no_beat);

// Below an effective rank of 2, embeddings hardly leave one line, whatever the image: the encoder has collapsed. A
// working encoder has tens. An untrained network can be below 2, so this is not checked before the first step.
inline constexpr double kCollapsedRank = 2;

}  // namespace simclr
