// Takes the place of the image files' readers and writers in a build without image libraries (SDTUNE_IMAGE=OFF).
#include "model/base/error.h"
#include "model/image/grid.h"
#include "model/image/image_header.h"
#include "model/image/image_read.h"
#include "model/image/png_write.h"

namespace sdtune::model {

namespace {

[[noreturn]] void refuse(const std::string& where) {
  throw DataError(where, "this build of sdtune has no image libraries", "configure it with -DSDTUNE_IMAGE=ON");
}

}  // namespace

ImageInfo probe_image(std::string_view, const std::string& where) {
  refuse(where);
}
Image decode_image(std::string_view, const std::string& where) {
  refuse(where);
}
ImageInfo verify_image(std::string_view, const std::string& where) {
  refuse(where);
}
Preview preview_image(std::string_view, const std::string& where, std::int64_t) {
  refuse(where);
}
ImageReading::ImageReading(std::string_view, std::string where) {
  refuse(where);
}
Image ImageReading::preview(std::int64_t) {
  refuse(where_);
}
Image ImageReading::whole() {
  refuse(where_);
}
Image read_image(const std::filesystem::path& path) {
  refuse(path.string());
}
Image read_grey_on_black(const std::filesystem::path& path) {
  refuse(path.string());
}
std::optional<Image> read_alpha(const std::filesystem::path& path) {
  refuse(path.string());
}
std::string encode_png(const Image&, const std::vector<PngText>&) {
  refuse("PNG");
}
void write_png(FileSystem&, const std::filesystem::path& path, const Image&, const std::vector<PngText>&) {
  refuse(path.string());
}
Image make_grid(const std::vector<Image>&, const GridLayout&) {
  refuse("grid");
}

}  // namespace sdtune::model
