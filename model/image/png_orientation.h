// How a PNG file is to be turned: as its eXIf chunk says, or the texts in which ImageMagick and others keep EXIF and
// XMP.
#pragma once

#include <string>
#include <string_view>

namespace sdtune::model {

// Takes the chunks of a file in their order, and finds what Pillow's getexif finds in them.
class PngOrientation {
 public:
  // `content` outlives it.
  void take(std::string_view type, std::string_view content);

  // EXIF, 1 to 8; 1 where nothing that can be read says another.
  int orientation() const;

 private:
  std::string_view exif_;
  std::string profile_;  // the text "Raw profile type exif"
  std::string xmp_;
};

}  // namespace sdtune::model
