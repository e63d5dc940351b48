#include "train/portrait/evaluate/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/core/image_tensor.h"
#include "model/image/grid.h"

namespace sdtune::train::evaluate {
namespace {

constexpr std::size_t kNameWidth = 24;
constexpr std::size_t kCellWidth = 22;

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

std::string cell(const std::optional<Estimate>& estimate) {
  if (!estimate) return "-";
  return fmt::format("{:.3f} ({:.3f}..{:.3f})", estimate->value, estimate->low, estimate->high);
}

std::string ratio_line(const char* name, double value) {
  return padded(name, kNameWidth) + fmt::format("{:.3f}\n", value);
}

void add_row(const torch::Tensor& images, std::int64_t columns, std::vector<Image>& cells) {
  for (std::int64_t i = 0; i < columns; ++i) {
    const bool there = i < images.size(0);
    const torch::Tensor image = there ? (images[i] + 1) / 2 : torch::ones_like(images[0]);
    cells.push_back(model::tensor_to_image(image));
  }
}

}  // namespace

std::string table_of(const Evaluation& evaluation) {
  std::string text = padded("", kNameWidth);
  for (const EvaluationRow& row : evaluation.rows) text += padded(row.name, kCellWidth);
  text += "\n";
  for (const auto& [name, estimate] : evaluation.rows.front().scores.figures) {
    text += padded(name, kNameWidth);
    for (const EvaluationRow& row : evaluation.rows) text += padded(cell(row.scores.find(name)), kCellWidth);
    text += "\n";
  }
  return text + ratio_line("accepted_of_renders", evaluation.accepted_of_renders) +
         ratio_line("diversity_kept", evaluation.diversity_kept) +
         ratio_line("class_fidelity_kept", evaluation.class_fidelity_kept);
}

Json to_json(const Evaluation& evaluation) {
  Json rows = Json::object();
  for (const EvaluationRow& row : evaluation.rows) {
    for (const auto& [name, estimate] : row.scores.figures) {
      rows[row.name][name] =
          Json{{"value", estimate.value}, {"low", estimate.low}, {"high", estimate.high}, {"count", estimate.count}};
    }
  }
  return Json{{"rows", rows},
              {"accepted_of_renders", evaluation.accepted_of_renders},
              {"diversity_kept", evaluation.diversity_kept},
              {"class_fidelity_kept", evaluation.class_fidelity_kept}};
}

Image sheet_of(const Evaluation& evaluation) {
  const std::int64_t columns = std::max(evaluation.references.size(0), evaluation.tuned_images.size(0));
  std::vector<Image> cells;
  add_row(evaluation.references, columns, cells);
  add_row(evaluation.base_images, columns, cells);
  add_row(evaluation.tuned_images, columns, cells);
  model::GridLayout layout;
  layout.columns = columns;
  return model::make_grid(cells, layout);
}

}  // namespace sdtune::train::evaluate
