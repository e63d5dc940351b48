// The Python that sdtune's side processes run with. The product itself needs none.
#pragma once

#include <filesystem>

namespace sdtune::train {

// SDTUNE_PYTHON, else the interpreter that this module was imported by (use_python), else the one beside `program`
// (of the wheel's environment), else the first python3 of PATH; empty where there is none.
std::filesystem::path find_python(const std::filesystem::path& program);
std::filesystem::path find_python();  // of the running program

// Said once by the Python module: sys.executable.
void use_python(const std::filesystem::path& interpreter);

}  // namespace sdtune::train
