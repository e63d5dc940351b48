// An image file in memory, as a viewer shows it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "model/base/image.h"
#include "model/image/image_header.h"

namespace sdtune::model {

// JPEG, PNG, WebP or HEIC (where libheif is here), whatever the file's name says, as 8-bit RGB:
//   - turned as EXIF asks (of a PNG also EXIF or XMP in its texts), a HEIC as its own boxes ask;
//   - alpha (also of a palette or of one clear colour) is laid on white, so hidden colours stay hidden;
//   - 16-bit channels keep their high byte. Pillow does the same for colour; its convert("RGB") of 16-bit grey clips at
//     255 instead, which turns almost every such photo white, so there we differ on purpose;
//   - grey is repeated over the channels, palettes are looked up;
//   - CMYK as decode_jpeg says; colour profiles are not applied, as in Pillow's convert("RGB").
// Throws DataError naming the file and the cause; see probe_image and decode_jpeg.
Image read_image(const std::filesystem::path& path);
// A mask: its grey (Rec. 601 luma, rounded as Pillow's convert("L") does) times its alpha, so that what is transparent
// is black. Repeated over the channels, turned as EXIF asks.
Image read_grey_on_black(const std::filesystem::path& path);
// The alpha channel as grey, turned as EXIF asks; unset for a file without one.
std::optional<Image> read_alpha(const std::filesystem::path& path);
Image decode_image(std::string_view bytes, const std::string& where);

// Reads all of the file's data as decode_image does, throws what it would throw, and keeps no pixels.
ImageInfo verify_image(std::string_view bytes, const std::string& where);

// An image seen from far: as decode_image gives it, but with its longer side reduced to `longest` px, or a little less
// (3/4 of it at least).
struct Preview {
  ImageInfo info;
  Image image;
};

// A file in memory of which a preview and the whole image are wanted, decoded once for both. Only a large JPEG is
// decoded apart for its preview, by libjpeg at a reduced scale, which takes a fraction of the time. Throws as
// decode_image does.
class ImageReading {
 public:
  // `bytes` outlive it.
  ImageReading(std::string_view bytes, std::string where);

  const ImageInfo& info() const { return info_; }
  // See preview_image.
  Image preview(std::int64_t longest);
  // As decode_image gives it. Called last: it takes the pixels away.
  Image whole();

 private:
  const Image& stored();

  std::string_view bytes_;
  std::string where_;
  ImageInfo info_;
  std::optional<Image> stored_;  // before the EXIF turn
};

// Reads all of the file's data like verify_image, in little more time. `longest` at least 1; a smaller image stays as
// it is.
Preview preview_image(std::string_view bytes, const std::string& where, std::int64_t longest);

}  // namespace sdtune::model
