#include "model/image/ai_mark.h"

namespace sdtune::model {
namespace {

constexpr const char* kPngKey = "XML:com.adobe.xmp";  // XMP specification, part 3, PNG

// The id of an XMP packet is the same in all files.
constexpr const char* kPacket =
    "<?xpacket begin=\"\xEF\xBB\xBF\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n"
    "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\n"
    " <rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n"
    "  <rdf:Description rdf:about=\"\" xmlns:Iptc4xmpExt=\"http://iptc.org/std/Iptc4xmpExt/2008-02-29/\"\n"
    "   Iptc4xmpExt:DigitalSourceType=\"http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia\"/>\n"
    " </rdf:RDF>\n"
    "</x:xmpmeta>\n"
    "<?xpacket end=\"r\"?>";

}  // namespace

PngText ai_generated_mark() {
  return {kPngKey, kPacket};  // not ASCII, so it becomes an iTXt chunk, as XMP must be
}

}  // namespace sdtune::model
