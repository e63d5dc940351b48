#include "model/products/small_product.h"

#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/core/cpu_implementation.h"
#include "model/products/sizes_only.h"
#include "model/products/small_product_parts.h"

namespace sdtune::model {
namespace {

constexpr int64_t kMostNumbers = int64_t{1} << 17;
// With AVX2, below this many rows, bringing the other matrix into panels costs more than MKL's call.
constexpr int64_t kFewRowsOfAvx2 = 32;
constexpr int64_t kBatchShare = 480;  // rows of a batch's matrix that one thread multiplies

bool is_worth_it(Vectors vectors, const ProductSizes& sizes) {
  const auto [m, k, n] = sizes;
  if (vectors == Vectors::kAvx2) return m >= kFewRowsOfAvx2;
  return m * k <= kMostNumbers && k * n <= kMostNumbers && m * n <= kMostNumbers;
}

// How a matrix lies: with numbers side by side in its rows or in its columns.
enum class Side : std::int8_t { kRows, kColumns };

bool is_dense(const torch::Tensor& matrix, Side side) {
  return matrix.stride(side == Side::kRows ? 1 : 0) == 1;
}

// Whether pairs of its numbers that lie side by side can be read as one number.
bool has_pairs(const torch::Tensor& matrix, Side side) {
  if (matrix.scalar_type() == torch::kFloat32) return true;
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(matrix.const_data_ptr()) % sizeof(float) == 0;
  return is_aligned && matrix.stride(side == Side::kRows ? 0 : 1) % 2 == 0;
}

torch::Tensor copied(const torch::Tensor& matrix, Side side) {
  if (side == Side::kRows) return matrix.clone(torch::MemoryFormat::Contiguous);
  return matrix.t().clone(torch::MemoryFormat::Contiguous).t();
}

// A matrix in memory that can be read along `side`.
struct ReadableMatrix {
  torch::Tensor matrix;
  Side side;
};

// `deep`: the side along the product's depth, whose numbers are read in pairs. With an odd depth there are none.
ReadableMatrix readable(const torch::Tensor& matrix, Side deep, bool has_odd_depth) {
  const Side other = deep == Side::kRows ? Side::kColumns : Side::kRows;
  if (is_dense(matrix, other) && (has_odd_depth || !is_dense(matrix, deep))) return {matrix, other};
  if (has_odd_depth) return {copied(matrix, other), other};
  if (is_dense(matrix, deep) && has_pairs(matrix, deep)) return {matrix, deep};
  return {copied(matrix, deep), deep};
}

template <class T>
products::Matrix<T> matrix_of(const ReadableMatrix& readable) {
  const bool is_by_rows = readable.side == Side::kRows;
  return {readable.matrix.const_data_ptr<T>(), is_by_rows ? readable.matrix.stride(0) : 1,
          is_by_rows ? 1 : readable.matrix.stride(1)};
}

template <class T>
torch::Tensor multiply(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& bias,
                       products::MultiplyPart<T> multiply_part) {
  TORCH_CHECK(a.size(1) == b.size(0), "a product of ", a.sizes(), " and ", b.sizes());
  const bool has_odd_depth = a.scalar_type() == torch::kBFloat16 && a.size(1) % 2 != 0;
  const ReadableMatrix left = readable(a, Side::kRows, has_odd_depth),
                       right = readable(b, Side::kColumns, has_odd_depth);
  const torch::Tensor constants = bias.defined() ? bias.contiguous() : bias;
  torch::Tensor out = torch::empty({a.size(0), b.size(1)}, a.options().requires_grad(false));
  const products::SmallProduct<T> product = {.rows = a.size(0),
                                             .depth = a.size(1),
                                             .columns = b.size(1),
                                             .a = matrix_of<T>(left),
                                             .b = matrix_of<T>(right),
                                             .bias = bias.defined() ? constants.const_data_ptr<T>() : nullptr,
                                             .out = out.mutable_data_ptr<T>()};
  products::multiply_in_parts(product, multiply_part);
  return out;
}

}  // namespace

bool is_small_product(const torch::Tensor& like, const ProductSizes& sizes) {
  const auto [m, k, n] = sizes;
  if (m * k * n == 0 || !like.is_cpu() || is_of_sizes_only()) return false;
  std::optional<Vectors> vectors;
  if (like.scalar_type() == torch::kFloat32) vectors = vectors_of_this_cpu();
  if (like.scalar_type() == torch::kBFloat16 && can_multiply_bfloat16_pairs() && k % 2 == 0 && n % 2 == 0) {
    vectors = Vectors::kAvx512Bfloat16;
  }
  return vectors && is_worth_it(*vectors, sizes) && cpu_implementation().small_products;
}

torch::Tensor small_product(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& bias) {
  return small_product(a, b, bias, vectors_of_this_cpu().value());
}

torch::Tensor small_product(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& bias,
                            Vectors vectors) {
  RECORD_FUNCTION("sdtune::small_product", std::vector<c10::IValue>({a, b}));
  if (a.scalar_type() == torch::kBFloat16) {
    return multiply<c10::BFloat16>(a, b, bias, products::multiply_bfloat16_part);
  }
  return multiply<float>(a, b, bias, products::multiply_part_by(vectors));
}

void small_products(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& out, bool adds) {
  small_products(a, b, out, adds, vectors_of_this_cpu().value());
}

void small_products(const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& out, bool adds,
                    Vectors vectors) {
  const auto is_readable = [](const torch::Tensor& batch) { return batch.stride(1) == 1 || batch.stride(2) == 1; };
  TORCH_CHECK(is_readable(a) && is_readable(b) && out.is_contiguous(), "matrices of another layout");
  const products::MultiplyPart<float> multiply_part = products::multiply_part_by(vectors);
  const int64_t rows = a.size(1), shares = (rows + kBatchShare - 1) / kBatchShare;
  const int64_t of_share = std::max<int64_t>(std::min(rows, kBatchShare) * a.size(2) * b.size(2), 1);
  const auto matrix = [](const torch::Tensor& batch, int64_t index) -> products::Matrix<float> {
    return {batch.const_data_ptr<float>() + index * batch.stride(0), batch.stride(1), batch.stride(2)};
  };
  float* const sums = out.mutable_data_ptr<float>();
  at::parallel_for(0, a.size(0) * shares, std::max<int64_t>(products::kOfThread / of_share, 1),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t index = i / shares, first = i % shares * kBatchShare;
                       const products::SmallProduct<float> product = {.rows = rows,
                                                                      .depth = a.size(2),
                                                                      .columns = b.size(2),
                                                                      .a = matrix(a, index),
                                                                      .b = matrix(b, index),
                                                                      .bias = nullptr,
                                                                      .out = sums + index * rows * b.size(2),
                                                                      .adds = adds};
                       multiply_part(product, {first, std::min(first + kBatchShare, rows), 0, b.size(2)});
                     }
                   });
}

}  // namespace sdtune::model
