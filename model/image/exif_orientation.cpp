#include <libexif/exif-data.h>

#include <memory>
#include <string>

#include "model/image/orientation.h"

namespace sdtune::model {

namespace {

struct ExifDeleter {
  void operator()(ExifData* data) const { exif_data_unref(data); }
};

}  // namespace

std::optional<int> find_exif_orientation(std::string_view tiff_block) {
  if (tiff_block.empty()) return std::nullopt;
  // libexif wants JPEG's prefix.
  const std::string block = std::string("Exif\0\0", 6) + std::string(tiff_block);
  const std::unique_ptr<ExifData, ExifDeleter> data(exif_data_new());
  if (data == nullptr) return std::nullopt;
  exif_data_unset_option(data.get(), EXIF_DATA_OPTION_FOLLOW_SPECIFICATION);
  exif_data_load_data(data.get(), reinterpret_cast<const unsigned char*>(block.data()),
                      static_cast<unsigned int>(block.size()));
  const ExifEntry* entry = exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (entry == nullptr) return std::nullopt;
  if (entry->format != EXIF_FORMAT_SHORT || entry->size < 2) return 1;
  const int orientation = exif_get_short(entry->data, exif_data_get_byte_order(data.get()));
  return orientation >= 1 && orientation <= 8 ? orientation : 1;
}

}  // namespace sdtune::model
