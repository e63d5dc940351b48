#include "model/image/foreign_format.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "model/image/heic_decode.h"

namespace sdtune::model {

namespace {

using std::string_view_literals::operator""sv;

constexpr const char* kConvert = "convert it to JPEG or PNG, for example: magick FILE FILE.jpg";
constexpr const char* kHeic = "convert it to JPEG (heif-convert FILE FILE.jpg), or set the phone to 'Most Compatible'";
constexpr const char* kOneFrame = "save one frame of it as PNG, for example: magick 'FILE[0]' FILE.png";
constexpr const char* kRaw = "develop it to JPEG or 16-bit PNG first, for example with darktable-cli FILE FILE.png";

struct Signature {
  std::string_view start;
  const char* name;
  const char* hint;
};

constexpr std::array kSignatures = {
    Signature{"GIF8"sv, "a GIF", kOneFrame},
    Signature{"II*\0"sv, "a TIFF or camera raw file", kRaw},
    Signature{"MM\0*"sv, "a TIFF or camera raw file", kRaw},
    Signature{"II+\0"sv, "a BigTIFF", kConvert},
    Signature{"FUJIFILMCCD-RAW"sv, "a camera raw file", kRaw},
    Signature{"BM"sv, "a BMP", kConvert},
    Signature{"\0\0\1\0"sv, "an icon", kConvert},
    Signature{"\xff\x0a"sv, "a JPEG XL image", kConvert},
    Signature{"\0\0\0\x0cJXL "sv, "a JPEG XL image", kConvert},
    Signature{"\0\0\0\x0cjP  "sv, "a JPEG 2000 image", kConvert},
    Signature{"8BPS"sv, "a Photoshop file", kConvert},
    Signature{"%PDF"sv, "a PDF", kConvert},
    Signature{"qoif"sv, "a QOI image", kConvert},
    Signature{"PK\3\4"sv, "a ZIP archive", "unpack it first"},
    Signature{"version https://git-lfs"sv, "a git-lfs pointer, not the file itself", "run: git lfs pull"},
};

// ISO base media files (HEIC, AVIF, MP4) name their kind at byte 8.
ForeignFormat name_media_box(std::string_view bytes) {
  const std::string_view brand = bytes.substr(8, 4);
  if (is_heic(bytes)) return {"a HEIC image", kHeic};
  if (brand == "avif" || brand == "avis") return {"an AVIF image", kConvert};
  if (brand.starts_with("crx")) return {"a camera raw file", kRaw};
  return {"a video", kOneFrame};
}

}  // namespace

ForeignFormat name_foreign_format(std::string_view bytes) {
  if (bytes.size() >= 12 && bytes.substr(4, 4) == "ftyp") return name_media_box(bytes);
  for (const Signature& signature : kSignatures) {
    if (bytes.starts_with(signature.start)) return {signature.name, signature.hint};
  }
  const auto text = std::find_if(bytes.begin(), bytes.end(), [](unsigned char c) { return std::isspace(c) == 0; });
  if (text != bytes.end() && *text == '<') return {"a web page, SVG or other markup", "download the image itself"};
  return {};
}

}  // namespace sdtune::model
