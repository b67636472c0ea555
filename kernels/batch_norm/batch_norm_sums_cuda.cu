// batch_norm on CUDA: the sums over a rank's shards. Three steps, each of one fixed order: a block sums one chunk of
// rows (floats over a few rows of a thread, doubles beyond), a block adds the chunks of a shard, a thread adds the
// shards.
#include "kernels/batch_norm/batch_norm_device.h"
#include "kernels/batch_norm/batch_norm_tile.cuh"
#include "kernels/common/ordered_tree.cuh"

namespace simclr::batch_norm {
namespace {

constexpr int kFloatTerms = 16;  // rows that a thread adds in float
constexpr int kChunkLanes = 8;   // threads that share the chunks of a channel

// Adds up rows of shared [2][lanes][kTileChannels] as a tree: lane l takes lane l + lanes/2, then l + lanes/4, ...
// The sums end in row 0. A thread has `width` channels from column `first` on.
template <int kRows>
__device__ void add_lanes(double (&shared)[2][kRows][kTileChannels], int lane, int first, int width) {
  for (int half = kRows / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane >= half) continue;
    for (auto& sum : shared) {
      for (int k = first; k < first + width; ++k) sum[lane][k] += sum[lane + half][k];
    }
  }
}

// The block's chunk: term(share, element, a, b) adds the terms of four elements to a and b. The sums go to
// partial [shards*groups, chunks, 2, padded].
template <typename TermFn>
__device__ void sum_chunk(const Maps& maps, double* partial, TermFn&& term) {
  __shared__ double shared[2][kLanes][kTileChannels];
  const Share share = share_of(maps);
  double sum[2][kFour] = {};
  for (int64_t r = share.first; r < share.end;) {
    float few[2][kFour] = {};
    for (int i = 0; i < kFloatTerms && r < share.end; ++i, r += kLanes) {
      term(share, share.base + r * maps.padded, few[0], few[1]);
    }
    for (int k = 0; k < kFour; ++k) sum[0][k] += few[0][k], sum[1][k] += few[1][k];
  }
  const int lane = threadIdx.y, first = threadIdx.x * kFour;
  for (int k = 0; k < kFour; ++k) {
    shared[0][lane][first + k] = sum[0][k];
    shared[1][lane][first + k] = sum[1][k];
  }
  add_lanes(shared, lane, first, kFour);
  if (lane > 0 || share.c >= maps.padded) return;
  double* out = partial + (share.part * gridDim.x + blockIdx.x) * 2 * maps.padded + share.c;
  for (int k = 0; k < kFour; ++k) {
    out[k] = shared[0][0][first + k];
    out[maps.padded + k] = shared[1][0][first + k];
  }
}

// sum of x - k and (x - k)^2, k the channel's first value in the shard's group.
template <typename T>
__global__ void forward_chunks_kernel(Maps maps, const T* x, double* partial) {
  sum_chunk(maps, partial, [&](const Share& share, int64_t e, float(&a)[kFour], float(&b)[kFour]) {
    float shift[kFour], v[kFour];
    load_four(x + share.base, shift);
    load_four(x + e, v);
    for (int k = 0; k < kFour; ++k) {
      const float d = v[k] - shift[k];
      a[k] += d;
      b[k] += d * d;
    }
  });
}

// sum of g and g*(x - mean); g is written to masked when that is given.
template <typename T>
__global__ void backward_chunks_kernel(Maps maps, Affine affine, Gradients<T> in, T* masked, double* partial) {
  const Share own = share_of(maps);
  const FourAffine of = own.first < own.end ? four_of(affine, maps, own) : FourAffine{};
  sum_chunk(maps, partial, [&](const Share&, int64_t e, float(&a)[kFour], float(&b)[kFour]) {
    float g[kFour], v[kFour];
    load_four(in.grad_y + e, g);
    load_four(in.x + e, v);
    if (in.relu) pass_relu(in.relu_y, e, of, v, g);
    if (masked) store_four(masked + e, g);
    for (int k = 0; k < kFour; ++k) {
      a[k] += g[k];
      b[k] += g[k] * (v[k] - of.mean[k]);
    }
  });
}

// One tile of channels of one shard's group: the sum over its chunks, into parts [shards*groups, 2, padded]. With x the
// sums were taken about its first row, which is put right here.
template <typename T>
__global__ void add_chunks_kernel(Maps maps, int64_t chunks, const double* partial, const T* x, double* parts) {
  __shared__ double shared[2][kChunkLanes][kTileChannels];
  const int column = threadIdx.x, lane = threadIdx.y;
  const int64_t part = blockIdx.y, c = int64_t{blockIdx.x} * kTileChannels + column;
  double first = 0, second = 0;
  if (c < maps.padded) {
    for (int64_t i = lane; i < chunks; i += kChunkLanes) {
      const double* p = partial + (part * chunks + i) * 2 * maps.padded + c;
      first += p[0];
      second += p[maps.padded];
    }
  }
  shared[0][lane][column] = first;
  shared[1][lane][column] = second;
  add_lanes(shared, lane, column, 1);
  if (lane > 0 || c >= maps.padded) return;
  first = shared[0][0][column];
  second = shared[1][0][column];
  if (x) {
    const double k = to_float(x[part * maps.rows * maps.padded + c]), count = as_double(maps.rows);
    second += 2 * k * first + count * k * k;
    first += count * k;
  }
  parts[part * 2 * maps.padded + c] = first;
  parts[(part * 2 + 1) * maps.padded + c] = second;
}

__global__ void add_shards_kernel(const double* parts, int shards, int64_t elements, double* sums) {
  const int64_t k = thread_index();
  if (k < elements) sums[k] = ordered_tree_value<double>([&](int s) { return parts[s * elements + k]; }, shards);
}

// sum_chunks(maps, grid, partial) queues the first step; first_row is x where that was taken about x's first row.
template <typename T, typename SumChunksFn>
void sum_over_shards(const CudaExec& exec, const ConstActivation& x, int groups, const T* first_row, double* sums,
                     SumChunksFn&& sum_chunks) {
  const int shards = tree_parts(x.shards);
  Maps maps = maps_of(x, groups);
  maps.chunk_rows = rows_of_chunk(maps.rows, maps.padded, groups);
  const Grid grid = grid_of(maps, x.shards);
  const int64_t chunks = grid.blocks.x, elements = groups * 2 * maps.padded;
  // [shards, groups, chunks, 2, Cp], then [shards, groups, 2, Cp]
  double* partial = workspace_as<double>(exec, x.shards * elements * (chunks + 1));
  double* parts = x.shards == 1 ? sums : partial + x.shards * elements * chunks;
  sum_chunks(maps, grid, partial);
  const Grid tiles{.blocks = dim3(blocks_of(tiles_of(maps.padded)), blocks_of(x.shards * groups)),
                   .threads = dim3(kTileChannels, kChunkLanes)};
  launch(exec, "batch_norm_add_chunks", tiles, add_chunks_kernel<T>, maps, chunks, partial, first_row, parts);
  if (x.shards == 1) return;
  launch(exec, "batch_norm_add_shards", thread_each(elements), add_shards_kernel, parts, shards, elements, sums);
}

}  // namespace

void sums(const CudaExec& exec, ConstActivation x, int groups, double* sums) {
  with_storage(x.type(), [&]<typename T>(T) {
    const T* data = x.data.as<T>();
    sum_over_shards(exec, x, groups, data, sums, [&](const Maps& maps, const Grid& grid, double* partial) {
      launch(exec, "batch_norm_forward_chunks", grid, forward_chunks_kernel<T>, maps, data, partial);
    });
  });
}

void backward_sums(const CudaExec& exec, ConstActivation grad_y, ConstActivation x, const BatchNormBackward& how,
                   Elements masked, double* sums) {
  with_storage(x.type(), [&]<typename T>(T) {
    const T* none = nullptr;  // these sums are about zero
    const int groups = how.statistics.groups;
    sum_over_shards(exec, x, groups, none, sums, [&](const Maps& maps, const Grid& grid, double* partial) {
      launch(exec, "batch_norm_backward_chunks", grid, backward_chunks_kernel<T>, maps,
             affine_of(how.statistics, how.gamma, how.beta), gradients_of<T>(grad_y, x, how), masked.as<T>(), partial);
    });
  });
}

}  // namespace simclr::batch_norm
