// Texts and images as they stand in an HTML file that needs no other file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace sdtune::train {

// With &, <, > and both quotes escaped: safe between tags and inside an attribute's quotes.
std::string html_escaped(std::string_view text);

// "<img ...>" that holds the PNG file itself; empty when the file is not there or cannot be read.
std::string html_image(const std::filesystem::path& png, const std::string& description);

}  // namespace sdtune::train
