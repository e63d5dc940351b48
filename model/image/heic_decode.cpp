#include "model/image/heic_decode.h"

#include <dlfcn.h>
#include <libheif/heif.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "model/base/error.h"
#include "model/image/foreign_format.h"

namespace sdtune::model {

namespace {

using std::string_view_literals::operator""sv;

constexpr const char* kLibrary = "libheif.so.1";

// The functions of libheif's C interface that are used.
struct HeicLibrary {
  decltype(&heif_context_alloc) context_alloc = nullptr;
  decltype(&heif_context_free) context_free = nullptr;
  decltype(&heif_context_read_from_memory_without_copy) read_from_memory = nullptr;
  decltype(&heif_context_get_primary_image_handle) primary_handle = nullptr;
  decltype(&heif_image_handle_release) handle_release = nullptr;
  decltype(&heif_image_handle_get_width) handle_width = nullptr;
  decltype(&heif_image_handle_get_height) handle_height = nullptr;
  decltype(&heif_image_handle_has_alpha_channel) handle_has_alpha = nullptr;
  decltype(&heif_decode_image) decode = nullptr;
  decltype(&heif_image_release) image_release = nullptr;
  decltype(&heif_image_get_width) image_width = nullptr;
  decltype(&heif_image_get_height) image_height = nullptr;
  decltype(&heif_image_get_plane_readonly) plane = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Never closed: decoders keep threads and tables.
std::unique_ptr<HeicLibrary> open_library(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  auto heif = std::make_unique<HeicLibrary>();
  const bool is_whole = find(library, "heif_context_alloc", heif->context_alloc) &&
                        find(library, "heif_context_free", heif->context_free) &&
                        find(library, "heif_context_read_from_memory_without_copy", heif->read_from_memory) &&
                        find(library, "heif_context_get_primary_image_handle", heif->primary_handle) &&
                        find(library, "heif_image_handle_release", heif->handle_release) &&
                        find(library, "heif_image_handle_get_width", heif->handle_width) &&
                        find(library, "heif_image_handle_get_height", heif->handle_height) &&
                        find(library, "heif_image_handle_has_alpha_channel", heif->handle_has_alpha) &&
                        find(library, "heif_decode_image", heif->decode) &&
                        find(library, "heif_image_release", heif->image_release) &&
                        find(library, "heif_image_get_width", heif->image_width) &&
                        find(library, "heif_image_get_height", heif->image_height) &&
                        find(library, "heif_image_get_plane_readonly", heif->plane);
  return is_whole ? std::move(heif) : nullptr;
}

const HeicLibrary* library() {
  static const std::unique_ptr<HeicLibrary> heif = open_library(kLibrary);
  return heif.get();
}

// The main image of a file. Holds on to `bytes`.
class HeicFile {
 public:
  HeicFile(std::string_view bytes, const std::string& where) : where_(where) {
    if (library() == nullptr) {
      const ForeignFormat foreign = name_foreign_format(bytes);
      throw DataError(where,
                      "this is " + foreign.name + ", and libheif is not here to read it (allowed: JPEG, PNG, WebP)",
                      "install it (apt-get install libheif1), or " + foreign.hint);
    }
    context_.reset(library()->context_alloc());
    check(library()->read_from_memory(context_.get(), bytes.data(), bytes.size(), nullptr), bytes);
    heif_image_handle* handle = nullptr;
    check(library()->primary_handle(context_.get(), &handle), bytes);
    handle_.reset(handle);
  }

  HeicSize size() const { return {library()->handle_width(handle_.get()), library()->handle_height(handle_.get())}; }

  DecodedPixels pixels(std::string_view bytes) const {
    heif_image* decoded = nullptr;
    check(library()->decode(handle_.get(), &decoded, heif_colorspace_RGB, heif_chroma_interleaved_RGBA, nullptr),
          bytes);
    const std::unique_ptr<heif_image, ImageRelease> image(decoded);
    DecodedPixels pixels;
    pixels.width = library()->image_width(decoded, heif_channel_interleaved);
    pixels.height = library()->image_height(decoded, heif_channel_interleaved);
    pixels.has_alpha = library()->handle_has_alpha(handle_.get()) != 0;
    int stride = 0;
    const std::uint8_t* rows = library()->plane(decoded, heif_channel_interleaved, &stride);
    if (rows == nullptr)
      check({heif_error_Decoder_plugin_error, heif_suberror_Unspecified, "it gave no pixels"}, bytes);
    pixels.rgba.resize(pixels.row_bytes() * static_cast<std::size_t>(pixels.height));
    for (std::int64_t y = 0; y < pixels.height; ++y) {
      std::memcpy(pixels.rgba.data() + static_cast<std::size_t>(y) * pixels.row_bytes(), rows + y * stride,
                  pixels.row_bytes());
    }
    return pixels;
  }

 private:
  struct ContextFree {
    void operator()(heif_context* context) const { library()->context_free(context); }
  };
  struct HandleRelease {
    void operator()(heif_image_handle* handle) const { library()->handle_release(handle); }
  };
  struct ImageRelease {
    void operator()(heif_image* image) const { library()->image_release(image); }
  };

  void check(const heif_error& error, std::string_view bytes) const {
    if (error.code == heif_error_Ok) return;
    const std::string message = error.message != nullptr ? error.message : "no reason given";
    throw DataError(where_, "a HEIC image that cannot be read: libheif says \"" + message + "\"",
                    "copy it again if it is damaged, or " + name_foreign_format(bytes).hint);
  }

  const std::string& where_;
  std::unique_ptr<heif_context, ContextFree> context_;
  std::unique_ptr<heif_image_handle, HandleRelease> handle_;
};

}  // namespace

bool is_heic(std::string_view bytes) {
  constexpr std::array kBrands = {"heic"sv, "heix"sv, "hevc"sv, "hevx"sv, "heim"sv, "heis"sv, "mif1"sv, "msf1"sv};
  if (bytes.size() < 12 || bytes.substr(4, 4) != "ftyp") return false;
  return std::find(kBrands.begin(), kBrands.end(), bytes.substr(8, 4)) != kBrands.end();
}

bool can_decode_heic() {
  return library() != nullptr;
}

bool is_heic_library(const std::string& name) {
  return open_library(name.c_str()) != nullptr;
}

HeicSize read_heic_size(std::string_view bytes, const std::string& where) {
  return HeicFile(bytes, where).size();
}

DecodedPixels decode_heic(std::string_view bytes, const std::string& where) {
  return HeicFile(bytes, where).pixels(bytes);
}

}  // namespace sdtune::model
