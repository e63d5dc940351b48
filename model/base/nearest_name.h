// The suggestion in an error about an unknown name.
#pragma once

#include <string>
#include <vector>

namespace sdtune {

// Whether two names are the same, "-" and "_" being one.
bool same_name(const std::string& a, const std::string& b);

// The known name with the smallest edit distance to `name` ('-' and '_' are the same), or "" when none is near: up to a
// third of the length, and always up to 2, may differ.
std::string nearest_name(const std::string& name, const std::vector<std::string>& known);

}  // namespace sdtune
