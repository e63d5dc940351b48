#include "model/image/webp_decode.h"

#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "model/base/error.h"

namespace sdtune::model {

namespace {

const std::uint8_t* data_of(std::string_view bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

struct DemuxerDelete {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
using Demuxer = std::unique_ptr<WebPDemuxer, DemuxerDelete>;

Demuxer open_demuxer(std::string_view bytes, const std::string& where) {
  const WebPData data = {data_of(bytes), bytes.size()};
  WebPDemuxState state = WEBP_DEMUX_PARSE_ERROR;
  Demuxer demuxer(WebPDemuxPartial(&data, &state));
  if (demuxer != nullptr && state == WEBP_DEMUX_DONE) return demuxer;
  if (state == WEBP_DEMUX_PARSE_ERROR) throw DataError(where, "damaged WebP: its chunks do not fit each other");
  throw DataError(where, "truncated WebP: it ends after " + std::to_string(bytes.size()) + " bytes", "copy it again");
}

std::string exif_of(const WebPDemuxer* demuxer) {
  using std::string_view_literals::operator""sv;
  WebPChunkIterator chunk = {};
  std::string exif;
  if (WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk) != 0) {
    exif.assign(reinterpret_cast<const char*>(chunk.chunk.bytes), chunk.chunk.size);
    // Some writers copy JPEG's prefix in front of the TIFF block.
    if (exif.starts_with("Exif\0\0"sv)) exif.erase(0, 6);
  }
  WebPDemuxReleaseChunkIterator(&chunk);
  return exif;
}

}  // namespace

WebpHeader read_webp_header(std::string_view bytes, const std::string& where) {
  const Demuxer demuxer = open_demuxer(bytes, where);
  WebpHeader header;
  header.width = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH);
  header.height = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT);
  header.animated = (WebPDemuxGetI(demuxer.get(), WEBP_FF_FORMAT_FLAGS) & ANIMATION_FLAG) != 0;
  header.exif = exif_of(demuxer.get());
  return header;
}

DecodedPixels decode_webp(std::string_view bytes, const std::string& where) {
  WebPBitstreamFeatures features = {};
  DecodedPixels pixels;
  bool is_decoded = WebPGetFeatures(data_of(bytes), bytes.size(), &features) == VP8_STATUS_OK;
  if (is_decoded) {
    pixels.width = features.width;
    pixels.height = features.height;
    pixels.has_alpha = features.has_alpha != 0;
    pixels.rgba.resize(pixels.row_bytes() * static_cast<std::size_t>(pixels.height));
    is_decoded = WebPDecodeRGBAInto(data_of(bytes), bytes.size(), pixels.rgba.data(), pixels.rgba.size(),
                                    static_cast<int>(pixels.row_bytes())) != nullptr;
  }
  if (is_decoded) return pixels;
  throw DataError(where, "damaged WebP: its compressed data cannot be decoded",
                  "copy it again, or open and save it with an image editor");
}

}  // namespace sdtune::model
