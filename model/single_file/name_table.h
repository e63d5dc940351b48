// How one part's parameters are spelled in an LDM single file: a table from the starts of our names to theirs.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <string>

namespace sdtune::model {

// How the stored tensor follows from ours.
enum class StoredForm {
  kSame,
  kOneByOne,    // a linear layer's weight [O, I], stored as a convolution's [O, I, 1, 1]
  kTransposed,  // [O, I], stored as [I, O]
  kStacked,     // one of three of the same shape, stored one above the other: query, key, value
};

struct LdmName {
  std::string name;
  StoredForm form = StoredForm::kSame;
  std::int64_t third = 0;  // of kStacked: 0 query, 1 key, 2 value
};

class NameTable {
 public:
  // Names that begin with `ours` begin with ldm.name in the file. Both end in '.' or are whole names, and no `ours` is
  // the beginning of another.
  void add(std::string ours, LdmName ldm);
  // The LDM name of a parameter. Call contract: one of the starts fits.
  LdmName ldm_name(const std::string& ours) const;

 private:
  std::map<std::string, LdmName> starts_;
};

// The stored form of a parameter; for kStacked the parameter itself, which its two neighbours complete.
torch::Tensor to_stored(const torch::Tensor& ours, StoredForm form);
// Back again, as a view. A stored tensor that cannot have this form comes back as it is, for its shape to be refused.
torch::Tensor from_stored(const torch::Tensor& stored, const LdmName& name);

}  // namespace sdtune::model
