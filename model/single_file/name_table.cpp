#include "model/single_file/name_table.h"

#include <iterator>
#include <utility>

namespace sdtune::model {

void NameTable::add(std::string ours, LdmName ldm) {
  const bool inserted = starts_.emplace(std::move(ours), std::move(ldm)).second;
  TORCH_CHECK(inserted, "a name is given twice");
}

LdmName NameTable::ldm_name(const std::string& ours) const {
  // Of all starts that are not behind `ours` in the alphabet the last one is the only that can fit.
  const auto behind = starts_.upper_bound(ours);
  const bool fits = behind != starts_.begin() && ours.starts_with(std::prev(behind)->first);
  TORCH_CHECK(fits, "no LDM name for ", ours);
  const auto& [start, ldm] = *std::prev(behind);
  LdmName name = ldm;
  name.name += ours.substr(start.size());
  return name;
}

torch::Tensor to_stored(const torch::Tensor& ours, StoredForm form) {
  switch (form) {
    case StoredForm::kOneByOne:
      return ours.unsqueeze(2).unsqueeze(3);
    case StoredForm::kTransposed:
      return ours.t();
    case StoredForm::kSame:
    case StoredForm::kStacked:
      break;
  }
  return ours;
}

torch::Tensor from_stored(const torch::Tensor& stored, const LdmName& name) {
  switch (name.form) {
    case StoredForm::kTransposed:
      return stored.dim() == 2 ? stored.t() : stored;
    case StoredForm::kStacked: {
      const bool fits = stored.dim() >= 1 && stored.size(0) % 3 == 0;
      const std::int64_t rows = fits ? stored.size(0) / 3 : 0;
      return fits ? stored.narrow(0, name.third * rows, rows) : stored;
    }
    case StoredForm::kSame:
    case StoredForm::kOneByOne:
      break;
  }
  return stored;  // load_into squeezes 1 x 1 convolutions
}

}  // namespace sdtune::model
