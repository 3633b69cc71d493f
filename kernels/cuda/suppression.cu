// suppression.cu: NonMaxSuppression: a block takes a class of an image. It finds the best 2,048 candidates that are left, sorts them, and decides over 64 at a
// time, until enough are kept or none is left: what is never looked at is never sorted.
//
// Whether one of 64 stays depends on the boxes kept before (each warp compares a candidate with 32 of them at once) and on the better ones among the 64: a bit
// for each that it overlaps too much, found by all warps at once, so that the part which goes one by one only looks at bits. Such masks, 64 boxes a word, are
// how S. Ren, K. He, R. Girshick and J. Sun (Faster R-CNN, 2015, nms_kernel.cu) and after them torchvision do it, for all pairs of boxes at once; here there
// are no pairs of boxes that are not kept, which of 8,400 would be 9 MB for each class.
//
// How many boxes a class keeps is known when its block is done: a second kernel writes the rows of all classes one after the other, and how many they are.

#include "kernels/boxes.h"
#include "kernels/cuda/radix_select.h"
#include "kernels/cuda/sized_rows.h"
#include "kernels/cuda/sizes.h"
#include "kernels/indexing.h"

namespace serin::kernels::cuda {

namespace {

constexpr int kTile = 64;
constexpr uint32_t kChunk = 2048;  // candidates that are sorted at once, in shared memory
constexpr unsigned kLanes = 0xFFFFFFFFu;

/// Operands may be absent: null.
struct Suppression {
  int64_t classes = 0, lists = 0, boxes = 0;  ///< lists: classes of all images
  int64_t room = 0;                           ///< boxes that a list may keep at most
  bool center = false;
  const float *corners = nullptr, *scores = nullptr;  // [images, boxes, 4], [images, classes, boxes]
  const int64_t* most = nullptr;
  const float *overlap = nullptr, *score = nullptr;
  uint32_t *kept = nullptr, *counts = nullptr;  // [lists, room], [lists]

  __device__ Box box(int64_t list, uint32_t i) const {
    const float* const at = corners + (list / classes * boxes + i) * 4;
    return center ? boxes::from_center(at) : boxes::from_corners(at);
  }
};

/// The candidates of a list that come after the last one that was looked at.
struct Remaining {
  const float* scores;
  bool scored;  ///< there is a threshold
  float threshold;
  bool begun = false;
  Entry<uint32_t> last{};

  __device__ bool operator()(int64_t i, uint32_t& key) const {
    const float score = scores[i];
    if (scored && !(score > threshold)) return false;
    key = boxes::rank_of(score);
    return !begun || last.comes_before({key, static_cast<uint32_t>(i)});
  }
};

struct Shared {
  DigitCounts digits;
  Box tile[kTile];
  uint32_t overlapped[kTile][2];  ///< bit j of candidate i: it overlaps candidate j, j < i, too much
  bool meets_kept[kTile];
  uint32_t candidates, kept;
  Entry<uint32_t> entries[kChunk];
};

__device__ inline uint32_t count_candidates(const Remaining& remaining, int64_t boxes, uint32_t* shared) {
  if (threadIdx.x == 0) *shared = 0;
  __syncthreads();
  uint32_t own = 0, key;
  for (int64_t i = threadIdx.x; i < boxes; i += blockDim.x) own += remaining(i, key);
  own = combine_warp(own, Plus());
  if (threadIdx.x % 32 == 0) atomicAdd(shared, own);
  __syncthreads();
  return *shared;
}

/// The best of what remains, up to kChunk, sorted in shared.entries.
__device__ inline uint32_t next_chunk(const Remaining& remaining, int64_t boxes, uint32_t candidates, Shared& shared) {
  const uint32_t size = candidates < kChunk ? candidates : kChunk;
  uint32_t last = 0, equals = size, padded = 1;
  if (size < candidates) last = select<uint32_t>(remaining, boxes, shared.digits, equals);
  while (padded < size) padded *= 2;
  collect<uint32_t>(remaining, boxes, size, padded, last, equals, shared.digits, shared.entries);
  sort(shared.entries, padded);
  return size;
}

/// Decides over the candidates [first, first + count) of the chunk.
__device__ inline void run_tile(const Suppression& job, int64_t list, uint32_t first, uint32_t count, uint32_t most, float threshold,
                                Shared& shared) {
  uint32_t* const kept = job.kept + list * job.room;
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) shared.tile[i] = job.box(list, shared.entries[first + i].index);
  __syncthreads();
  const uint32_t lane = threadIdx.x % 32, before = shared.kept;
  for (uint32_t i = threadIdx.x / 32; i < count; i += blockDim.x / 32) {
    const Box own = shared.tile[i];
    bool meets = false;
    for (uint32_t k = 0; k < before && !meets; k += 32)
      meets = __any_sync(kLanes, k + lane < before && boxes::overlap(own, job.box(list, kept[k + lane]), threshold));
    if (lane == 0) shared.meets_kept[i] = meets;
    for (uint32_t half = 0; half < 2 && !meets; ++half) {
      const uint32_t j = half * 32 + lane;
      const unsigned bits = __ballot_sync(kLanes, j < i && boxes::overlap(own, shared.tile[j], threshold));
      if (lane == 0) shared.overlapped[i][half] = bits;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t stay[2] = {0, 0}, now = before;
    for (uint32_t i = 0; i < count && now < most; ++i) {
      if (shared.meets_kept[i] || (shared.overlapped[i][0] & stay[0]) != 0 || (shared.overlapped[i][1] & stay[1]) != 0) continue;
      stay[i / 32] |= 1u << i % 32;
      kept[now++] = shared.entries[first + i].index;
    }
    shared.kept = now;
  }
  __syncthreads();
}

__global__ void __launch_bounds__(1024) keep_boxes(Suppression job) {
  auto& shared = *shared_memory<Shared>();
  const int64_t limit = job.most ? *job.most : 0;
  const auto most = static_cast<uint32_t>(limit < 0 ? 0 : limit < job.room ? limit : job.room);
  const float threshold = job.overlap ? *job.overlap : 0;
  for (int64_t list = blockIdx.x; list < job.lists; list += gridDim.x) {
    Remaining remaining{job.scores + list * job.boxes, job.score != nullptr, job.score ? *job.score : 0};
    uint32_t candidates = count_candidates(remaining, job.boxes, &shared.candidates);
    if (threadIdx.x == 0) shared.kept = 0;
    __syncthreads();
    while (candidates > 0 && shared.kept < most) {
      const uint32_t size = next_chunk(remaining, job.boxes, candidates, shared);
      for (uint32_t first = 0; first < size && shared.kept < most; first += kTile)
        run_tile(job, list, first, size - first < kTile ? size - first : kTile, most, threshold, shared);
      remaining.begun = true, remaining.last = shared.entries[size - 1];
      candidates -= size;
      __syncthreads();
    }
    if (threadIdx.x == 0) job.counts[list] = shared.kept;
    __syncthreads();
  }
}

constexpr int kWarps = 4;

/// Rows of image, class and box.
__global__ void __launch_bounds__(32 * kWarps) write_rows(Suppression job, int64_t* rows, int64_t* size) {
  const Counted counted = count_around<kWarps>(job.counts, job.lists, blockIdx.x, shared_memory<Counted>());
  for (int64_t i = threadIdx.x; i < job.counts[blockIdx.x]; i += blockDim.x) {
    int64_t* const row = rows + (counted.before + i) * 3;
    row[0] = blockIdx.x / job.classes, row[1] = blockIdx.x % job.classes, row[2] = job.kept[blockIdx.x * job.room + i];
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) *size = counted.total;
}

/// What is given as one number; null where it is absent or empty.
template <class T>
const T* number(Inputs in, size_t i) {
  const TensorView* const x = operand(in, i);
  return x && x->elements() == 1 ? x->as<const T>() : nullptr;
}

}  // namespace

Prepared prepare_non_max_suppression(const OpDesc& desc, PrepareContext&, std::string& why) {
  const Shape &corners = desc.inputs[0].shape, &scores = desc.inputs[1].shape;
  if (corners.rank() != 3 || scores.rank() != 3 || corners[2] != 4)
    return refuse(why, "boxes must be [batch, boxes, 4], scores have rank 3");
  const auto is = [&](size_t i, DType dtype) { return !has_operand(desc, i) || desc.inputs[i].dtype == dtype; };
  if (!is(0, DType::kFloat32) || !is(1, DType::kFloat32) || !is(2, DType::kInt64) || !is(3, DType::kFloat32) || !is(4, DType::kFloat32))
    return refuse(why, "boxes, scores and thresholds must be f32, the limit i64");
  for (size_t i = 2; i < desc.inputs.size(); ++i) {
    if (has_operand(desc, i) && desc.inputs[i].shape.elements() > 1) return refuse(why, "a limit must be one number");
  }
  const int64_t lists = scores[0] * scores[1];
  if (scores[2] >= UINT32_MAX || lists >= int64_t{1} << 30) return refuse(why, "more boxes or classes than 32 bits count");
  Suppression most;  // at the bounds; what is kept of a list is all that the result has room for
  most.room = lists == 0 ? 0 : desc.outputs[0].shape[0] / lists;
  most.center = std::get<Generic>(desc.op).attributes.integer("center_point_box", 0) != 0;
  const auto run = [most](Stream& stream, Inputs in, Outputs out) -> Fault {
    const Shape &at = in[0].shape, &of = in[1].shape;
    if (of[0] != at[0] || of[2] != at[1])
      return "boxes of shape " + at.str() + " and scores of shape " + of.str() + " do not belong together";
    Suppression job = most;
    job.classes = of[1], job.lists = of[0] * of[1], job.boxes = of[2];
    job.corners = in[0].as<const float>(), job.scores = in[1].as<const float>();
    job.most = number<int64_t>(in, 2), job.overlap = number<float>(in, 3), job.score = number<float>(in, 4);
    if (job.lists == 0 || job.boxes == 0 || job.room == 0) return leave_empty(stream, out);
    job.counts = reinterpret_cast<uint32_t*>(stream.scratch), job.kept = job.counts + job.lists;
    // Where classes are few each gets a whole multiprocessor.
    const unsigned threads = job.boxes <= 256 ? 128 : job.lists >= 64 ? 512 : 1024;
    if (Fault fault = launch(stream, {blocks_for(job.lists, 1), threads, sizeof(Shared)}, keep_boxes, job)) return fault;
    return launch(stream, {blocks_for(job.lists, 1), 32 * kWarps, kWarps * sizeof(Counted)}, write_rows, job, out[0].as<int64_t>(),
                  size_of_result(out));
  };
  return make_kernel(run, {.scratch_bytes = static_cast<size_t>(lists * (most.room + 1)) * sizeof(uint32_t)});
}

}  // namespace serin::kernels::cuda
