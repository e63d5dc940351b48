#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "tests/gpu/checks.h"
#include "train/optim/adamw_8bit_kernel.h"
#include "train/optim/dynamic_code.h"

namespace sdtune::test {

namespace {

using namespace sdtune::model;
using train::AdamWScalars;
using train::DynamicCode;
using train::kScaledBlock;

constexpr AdamWScalars kScalars{0.5f, 0.999f, 0.9f, 0.999f, 0.1f, 0.001f, 1e-2f, 0.0447f, 1e-8f};

struct Case {
  std::int64_t count;
  std::int32_t channels = 1, taps = 1;  // of channels_last memory
  std::size_t misalignment = 0;

  // Where number i of the shape's order lies.
  std::size_t place(std::int64_t i) const {
    if (taps == 1) return static_cast<std::size_t>(i);
    const std::int64_t plane = i / taps;
    return static_cast<std::size_t>(plane / channels * channels * taps + i % taps * channels + plane % channels);
  }
  std::int64_t blocks() const { return (count + kScaledBlock - 1) / kScaledBlock; }
};

// A parameter in the order of memory, moments in that of the shape.
struct Numbers {
  std::vector<float> master, gradient, mean_scales, square_scales;
  std::vector<std::uint8_t> mean_codes, square_codes;
};

Numbers numbers_of(const Case& c, CudaType gradient) {
  const auto size = static_cast<std::size_t>(c.count), blocks = static_cast<std::size_t>(c.blocks());
  Numbers n{random_numbers(size, 1),
            rounded(random_numbers(size, 2), gradient),
            random_numbers(blocks, 3, 0.1f),
            random_numbers(blocks, 4, 0.1f),
            std::vector<std::uint8_t>(blocks * 256),
            std::vector<std::uint8_t>(blocks * 256)};
  for (float& scale : n.mean_scales) scale = std::abs(scale);
  for (float& scale : n.square_scales) scale *= scale;
  std::mt19937 draw(5);
  for (std::size_t i = 0; i < n.mean_codes.size(); ++i) {
    const bool is_number = i < size;  // the last block is filled up with the codes of zero
    n.mean_codes[i] = static_cast<std::uint8_t>(is_number ? draw() : DynamicCode::with_sign().nearest(0));
    n.square_codes[i] = static_cast<std::uint8_t>(is_number ? draw() : DynamicCode::without_sign().nearest(0));
  }
  // One block whose moments and gradients are zero.
  for (std::int64_t i = 256; i < std::min<std::int64_t>(512, c.count); ++i) n.gradient[c.place(i)] = 0;
  if (blocks > 1) n.mean_scales[1] = n.square_scales[1] = 0;
  return n;
}

void encode(const std::vector<float>& numbers, const DynamicCode& code, std::uint8_t* codes, float& scale) {
  scale = 0;
  for (const float number : numbers) scale = std::max(scale, std::abs(number));
  for (std::size_t i = 0; i < numbers.size(); ++i) codes[i] = code.nearest(scale > 0 ? numbers[i] / scale : numbers[i]);
}

// adamw_8bit_update() (train/optim/adamw_8bit_kernel.cpp) in any order of memory.
void update(const Case& c, Numbers& n, const AdamWScalars& s) {
  const DynamicCode &of_mean = DynamicCode::with_sign(), &of_square = DynamicCode::without_sign();
  for (std::int64_t begin = 0; begin < c.count; begin += kScaledBlock) {
    const auto block = static_cast<std::size_t>(begin / kScaledBlock);
    std::vector<float> means, squares;
    for (std::int64_t i = begin; i < std::min(c.count, begin + kScaledBlock); ++i) {
      const std::size_t at = c.place(i);
      const float gradient = n.gradient[at] * s.gradient_factor;
      float mean = of_mean.values()[n.mean_codes[i]] * n.mean_scales[block];
      const float toward = s.keep1 * (gradient - mean);
      mean = mean + toward;
      const float before = of_square.values()[n.square_codes[i]] * n.square_scales[block];
      const float kept = s.beta2 * before, scaled = s.keep2 * gradient, added = scaled * gradient;
      const float square = kept + added;
      const float denominator = std::sqrt(square) / s.root_bias_correction2 + s.epsilon;
      const float decayed = n.master[at] * s.decay, step = s.step_size * mean;
      n.master[at] = decayed - step / denominator;
      means.push_back(mean), squares.push_back(square);
    }
    encode(means, of_mean, n.mean_codes.data() + begin, n.mean_scales[block]);
    encode(squares, of_square, n.square_codes.data() + begin, n.square_scales[block]);
  }
}

struct Parameter {
  Parameter(const Numbers& n, CudaType weight_type, CudaType gradient_type, std::size_t misalignment)
      : weight(n.master, weight_type),
        gradient(n.gradient, gradient_type, misalignment),
        master(n.master),
        mean_scales(n.mean_scales),
        square_scales(n.square_scales),
        mean_codes(n.mean_codes),
        square_codes(n.square_codes) {}
  train::CudaCodedParameter entry(const Case& c, bool own_master) {
    return {own_master ? master.data() : weight.data(),
            gradient.data(),
            master.data(),
            mean_codes.data(),
            square_codes.data(),
            mean_scales.data(),
            square_scales.data(),
            c.count,
            c.channels,
            c.taps};
  }

  TypedVector weight, gradient;
  DeviceVector<float> master, mean_scales, square_scales;
  DeviceVector<std::uint8_t> mean_codes, square_codes;
};

train::CudaCodeBook code_book() {
  train::CudaCodeBook book;
  for (int kind = 0; kind < 2; ++kind) {
    const DynamicCode& code = kind == 0 ? DynamicCode::with_sign() : DynamicCode::without_sign();
    std::copy(code.values().begin(), code.values().end(), book.values[kind]);
    std::copy(code.midpoints().begin(), code.midpoints().end(), book.midpoints[kind]);
    book.midpoints[kind][255] = std::numeric_limits<float>::infinity();
  }
  return book;
}

void check_types(Check& check, CudaType weight_type, CudaType gradient_type, bool skip) {
  const bool own_master = weight_type == CudaType::kFloat32;
  const std::vector<Case> cases = {
      {4096}, {4099}, {255}, {40 * 24 * 9, 24, 9}, {16384 + 300}, {7 * 5 * 9, 5, 9}, {5000, 1, 1, 1}};
  std::vector<Numbers> want;
  std::vector<std::unique_ptr<Parameter>> parameters;
  std::vector<train::CudaCodedParameter> entries;
  std::vector<std::int64_t> counts;
  for (const Case& c : cases) {
    want.push_back(numbers_of(c, gradient_type));
    parameters.push_back(std::make_unique<Parameter>(want.back(), weight_type, gradient_type, c.misalignment));
    entries.push_back(parameters.back()->entry(c, own_master));
    counts.push_back(c.count);
  }
  DeviceVector<train::CudaCodedParameter> list(entries);
  const std::vector<train::CudaChunk> chunk_list = chunks_of(counts);
  DeviceVector<train::CudaChunk> chunks(chunk_list);
  DeviceVector<train::CudaAdamWStep> step({train::CudaAdamWStep{kScalars, skip ? 1 : 0}});
  DeviceVector<train::CudaCodeBook> book({code_book()});
  sdtune_optimizer_table()->adamw_8bit(list.data(), chunks.data(), static_cast<std::int64_t>(chunk_list.size()),
                                       weight_type, gradient_type, step.data(), book.data(), kStream);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string of = std::to_string(counts[i]) + " " + name_of(weight_type) + " " + name_of(gradient_type);
    if (!skip) update(cases[i], want[i], kScalars);
    check.equal(of + " master", parameters[i]->master.host() == want[i].master);
    check.equal(of + " mean codes", parameters[i]->mean_codes.host() == want[i].mean_codes);
    check.equal(of + " square codes", parameters[i]->square_codes.host() == want[i].square_codes);
    check.equal(of + " mean scales", parameters[i]->mean_scales.host() == want[i].mean_scales);
    check.equal(of + " square scales", parameters[i]->square_scales.host() == want[i].square_scales);
    if (own_master) continue;
    check.equal(of + " weight", parameters[i]->weight.host() == rounded(want[i].master, weight_type));
  }
}

}  // namespace

void check_adamw_8bit() {
  Check check("adamw_8bit, same bits");
  for (const CudaType weight : kTypes) {
    check_types(check, weight, CudaType::kFloat32, false);
    check_types(check, weight, weight, false);
    check_types(check, weight, weight, true);
  }
}

}  // namespace sdtune::test
