#include "train/portrait/pretrain/label_cache.h"

#include <ATen/Parallel.h>

#include <array>
#include <map>

namespace sdtune::train::pretrain {
namespace {

torch::Tensor rows_like(const torch::Tensor& one, std::int64_t count) {
  std::vector<std::int64_t> sizes = one.sizes().vec();
  sizes.front() = count;
  return torch::empty(sizes, one.options());
}

std::array<torch::Tensor classifier::Labels::*, 4> columns() {
  using classifier::Labels;
  return {&Labels::classes, &Labels::numbers, &Labels::landmarks, &Labels::landmarks_seen};
}

}  // namespace

LabelCache::LabelCache(const ImagePool& pool, std::int64_t images)
    : pool_(pool), rows_(classifier::labels_of({pool.portrait(0)})), known_(static_cast<std::size_t>(images)) {
  for (const auto column : columns()) rows_.*column = rows_like(rows_.*column, images);
}

void LabelCache::find(const std::vector<std::int64_t>& indices) {
  std::vector<std::int64_t> unknown;
  for (const std::int64_t index : indices) {
    if (known_.at(static_cast<std::size_t>(index))) continue;
    known_[static_cast<std::size_t>(index)] = true;
    unknown.push_back(index);
  }
  at::parallel_for(0, static_cast<std::int64_t>(unknown.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t index = unknown[static_cast<std::size_t>(i)];
      const classifier::Labels one = classifier::labels_of({pool_.portrait(index)});
      for (const auto column : columns()) (rows_.*column)[index].copy_((one.*column)[0]);
    }
  });
}

classifier::Labels LabelCache::labels(const std::vector<std::int64_t>& indices) {
  find(indices);
  const torch::Tensor rows = torch::tensor(indices);
  classifier::Labels labels;
  for (const auto column : columns()) labels.*column = (rows_.*column).index_select(0, rows);
  std::map<std::int64_t, std::int64_t> people;
  std::vector<std::int64_t> of_rows;
  for (const std::int64_t index : indices) {
    const auto next = static_cast<std::int64_t>(people.size());
    of_rows.push_back(people.emplace(index / pool_.views(), next).first->second);
  }
  labels.people = torch::tensor(of_rows);
  return labels;
}

}  // namespace sdtune::train::pretrain
