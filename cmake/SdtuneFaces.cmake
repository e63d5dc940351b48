# sdtune-faces, the program that finds faces for sdtune. It holds OpenCV's detectors, which carry another protobuf than
# LibTorch, and so it is a program of its own without LibTorch. Where OpenCV's objdetect is missing, sdtune is built without
# it and says so when faces are asked for.
find_library(SDTUNE_OPENCV_objdetect opencv_objdetect)
find_path(SDTUNE_OBJDETECT_INCLUDE opencv2/objdetect.hpp PATH_SUFFIXES opencv4)
find_path(SDTUNE_CASCADES haarcascade_frontalface_alt.xml PATH_SUFFIXES share/opencv4/haarcascades)
if(NOT SDTUNE_OPENCV_objdetect OR NOT SDTUNE_OBJDETECT_INCLUDE)
  message(WARNING "No OpenCV objdetect (libopencv-objdetect-dev): sdtune is built without face detection")
  return()
endif()
find_package(nlohmann_json REQUIRED)
file(GLOB face_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/app/faces/*.cpp")
add_executable(sdtune-faces ${face_sources})
sdtune_setup_target(sdtune-faces DEPENDS "${SDTUNE_OPENCV_objdetect}" "${SDTUNE_OPENCV_imgproc}" "${SDTUNE_OPENCV_core}"
                    nlohmann_json::nlohmann_json)
target_include_directories(sdtune-faces SYSTEM PRIVATE "${SDTUNE_OPENCV_INCLUDE}" "${SDTUNE_OBJDETECT_INCLUDE}")
# What objdetect links in turn (dnn, calib3d) is found at run time.
target_link_options(sdtune-faces PRIVATE "LINKER:--allow-shlib-undefined")
add_dependencies(sdtune sdtune-faces)
get_target_property(program_rpath sdtune INSTALL_RPATH)
set_target_properties(sdtune-faces PROPERTIES INSTALL_RPATH "${program_rpath}")
install(TARGETS sdtune-faces RUNTIME DESTINATION bin)
set(SDTUNE_CASCADE_FILES "")
if(SDTUNE_CASCADES)
  foreach(cascade frontalface_alt frontalface_alt2)
    list(APPEND SDTUNE_CASCADE_FILES "${SDTUNE_CASCADES}/haarcascade_${cascade}.xml")
  endforeach()
  install(FILES ${SDTUNE_CASCADE_FILES} DESTINATION share/sdtune/haarcascades)
endif()
