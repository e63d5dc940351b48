// AdamW with decoupled decay (Loshchilov and Hutter, 2019) over many parameters in one launch, a block a chunk: one
// pass reads gradient, master and moments and writes master, moments and the weight in its own dtype.
#include "model/kernels/cuda/launch.cuh"
#include "model/kernels/cuda/numbers.cuh"
#include "train/optim/cuda/adamw_number.cuh"
#include "train/optim/cuda/launchers.cuh"

namespace sdtune::train {

using model::from_float;
using model::kThreads;
using model::to_float;

namespace {

// adamw_scalars(); a thread a rate. pow() of host and device may differ in the last of double's bits.
__global__ void adamw_step_kernel(const double* rates, int groups, const float* gradient_factor, std::int64_t* updates,
                                  CudaAdamWOptions options, CudaAdamWStep* steps) {
  const float factor = gradient_factor[0];
  const bool skip = !isfinite(factor);
  const std::int64_t update = updates[0] + 1;
  __syncthreads();  // every thread has read `updates`
  if (threadIdx.x == 0 && !skip) updates[0] = update;
  const auto t = static_cast<double>(update);
  for (int group = threadIdx.x; group < groups; group += kThreads) {
    const double rate = rates[group];
    AdamWScalars scalars;
    scalars.gradient_factor = factor;
    scalars.decay = static_cast<float>(1.0 - rate * options.weight_decay);
    scalars.beta1 = static_cast<float>(options.beta1);
    scalars.beta2 = static_cast<float>(options.beta2);
    scalars.keep1 = static_cast<float>(1.0 - options.beta1);
    scalars.keep2 = static_cast<float>(1.0 - options.beta2);
    scalars.step_size = static_cast<float>(rate / (1.0 - pow(options.beta1, t)));
    scalars.root_bias_correction2 = static_cast<float>(sqrt(1.0 - pow(options.beta2, t)));
    scalars.epsilon = static_cast<float>(options.epsilon);
    steps[group] = {scalars, skip ? 1 : 0};
  }
}

constexpr int kPack = 4;

template <typename Weight, typename Gradient>
__device__ void update_pack(const CudaParameter& p, std::int64_t at, const AdamWScalars& scalars) {
  float gradient[kPack], master[kPack], mean[kPack], square[kPack];
  model::load_floats(static_cast<const Gradient*>(p.gradient) + at, gradient);
  model::load_floats(p.master + at, master);
  model::load_floats(p.mean + at, mean);
  model::load_floats(p.square + at, square);
  for (int i = 0; i < kPack; ++i) adamw_number(scalars, gradient[i], master[i], mean[i], square[i]);
  model::store_floats(mean, p.mean + at);
  model::store_floats(square, p.square + at);
  model::store_floats(master, p.master + at);
  if (p.weight != p.master) model::store_floats(master, static_cast<Weight*>(p.weight) + at);
}

template <typename Weight, typename Gradient>
__device__ void update_one(const CudaParameter& p, std::int64_t at, const AdamWScalars& scalars) {
  float master = p.master[at], mean = p.mean[at], square = p.square[at];
  adamw_number(scalars, to_float(static_cast<const Gradient*>(p.gradient)[at]), master, mean, square);
  p.mean[at] = mean;
  p.square[at] = square;
  p.master[at] = master;
  if (p.weight != p.master) static_cast<Weight*>(p.weight)[at] = from_float<Weight>(master);
}

template <typename Weight, typename Gradient>
__global__ void adamw_kernel(const CudaParameter* parameters, const CudaChunk* chunks, const CudaAdamWStep* step) {
  if (step->skip != 0) return;
  const AdamWScalars scalars = step->scalars;
  const CudaChunk chunk = chunks[blockIdx.x];
  const CudaParameter p = parameters[chunk.parameter];
  const ChunkPlace place = chunk_place(chunk, p.count);
  const bool is_wide = model::is_aligned(p.weight, kPack * sizeof(Weight)) &&
                       model::is_aligned(p.gradient, kPack * sizeof(Gradient)) && model::is_aligned(p.master, 16) &&
                       model::is_aligned(p.mean, 16) && model::is_aligned(p.square, 16);
  const int packs = is_wide ? place.count / kPack : 0;
  for (int i = threadIdx.x; i < packs; i += kThreads) {
    update_pack<Weight, Gradient>(p, place.begin + std::int64_t{i} * kPack, scalars);
  }
  for (int i = packs * kPack + threadIdx.x; i < place.count; i += kThreads) {
    update_one<Weight, Gradient>(p, place.begin + i, scalars);
  }
}

}  // namespace

void launch_adamw_step(const double* rates, std::int64_t groups, const float* gradient_factor, std::int64_t* updates,
                       const CudaAdamWOptions& options, CudaAdamWStep* steps, const model::CudaStream& stream) {
  model::launch("adamw_step", adamw_step_kernel, dim3(1), stream, rates, groups, gradient_factor, updates, options,
                steps);
}

void launch_adamw(const CudaParameter* parameters, const CudaChunk* chunks, std::int64_t chunk_count,
                  model::CudaType weight_type, model::CudaType gradient_type, const CudaAdamWStep* step,
                  const model::CudaStream& stream) {
  if (chunk_count == 0) return;
  model::with_type(weight_type, [&](auto weight) {
    model::with_type(gradient_type, [&](auto gradient) {
      model::launch("adamw", adamw_kernel<decltype(weight), decltype(gradient)>,
                    dim3(static_cast<unsigned>(chunk_count)), stream, parameters, chunks, step);
    });
  });
}

}  // namespace sdtune::train
