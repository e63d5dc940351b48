#include "model/image/orientation.h"

#include <libexif/exif-data.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace sdtune::model {

namespace {

struct ExifDeleter {
  void operator()(ExifData* data) const { exif_data_unref(data); }
};

// The stored place that is seen at (x, y), for orientations that keep the axes and for those that swap them.
std::pair<std::int64_t, std::int64_t> stored_place(const Image& stored, int orientation, std::int64_t x,
                                                   std::int64_t y) {
  const std::int64_t right = stored.width - 1;
  const std::int64_t bottom = stored.height - 1;
  switch (orientation) {
    case 2:
      return {right - x, y};
    case 3:
      return {right - x, bottom - y};
    case 4:
      return {x, bottom - y};
    case 5:
      return {y, x};
    case 6:
      return {y, bottom - x};
    case 7:
      return {right - y, bottom - x};
    case 8:
      return {right - y, x};
    default:
      return {x, y};
  }
}

}  // namespace

int exif_orientation(std::string_view tiff_block) {
  if (tiff_block.empty()) return 1;
  // libexif wants JPEG's prefix.
  const std::string block = std::string("Exif\0\0", 6) + std::string(tiff_block);
  const std::unique_ptr<ExifData, ExifDeleter> data(exif_data_new());
  if (data == nullptr) return 1;
  exif_data_unset_option(data.get(), EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
  exif_data_load_data(data.get(), reinterpret_cast<const unsigned char*>(block.data()),
                      static_cast<unsigned int>(block.size()));
  const ExifEntry* entry = exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr || entry->format != EXIF_FORMAT_SHORT || entry->size < 2) return 1;
  const int orientation = exif_get_short(entry->data, exif_data_get_byte_order(data.get()));
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

Image oriented(Image stored, int orientation) {
  if (orientation <= 1 || orientation > 8) return stored;
  Image seen;
  const bool swapped = orientation >= 5;
  seen.width = swapped ? stored.height : stored.width;
  seen.height = swapped ? stored.width : stored.height;
  seen.rgb.resize(stored.rgb.size());
  // The stored place moves by a fixed stride with x and with y.
  const auto index = [&](std::int64_t x, std::int64_t y) {
    const auto [from_x, from_y] = stored_place(stored, orientation, x, y);
    return (from_y * stored.width + from_x) * 3;
  };
  const std::int64_t origin = index(0, 0);
  const std::int64_t stride_x = index(1, 0) - origin;
  const std::int64_t stride_y = index(0, 1) - origin;
  std::uint8_t* to = seen.rgb.data();
  for (std::int64_t y = 0; y < seen.height; ++y) {
    for (std::int64_t x = 0; x < seen.width; ++x, to += 3) {
      std::copy_n(stored.rgb.data() + origin + x * stride_x + y * stride_y, 3, to);
    }
  }
  return seen;
}

Image mirrored(Image image) {
  return oriented(std::move(image), 2);
}

}  // namespace sdtune::model
