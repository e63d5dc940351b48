// Which format a weight file really has, by its first bytes, whatever its name says.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sdtune {

// Throws WeightError naming `where`, what the content is and how to convert it, for everything that is recognisably not
// safetensors: pickles and zip archives (.bin, .ckpt, .pt), GGUF, HDF5, an HTML page, a git-lfs pointer, an empty file.
// Nothing is unpacked or executed. Returns for anything else.
void refuse_other_formats(std::span<const std::byte> bytes, const std::string& where);

}  // namespace sdtune
