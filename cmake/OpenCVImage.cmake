# The target `opencv_image`: core and imgproc alone. OpenCV's own config file comes only with the package of all
# modules, some of which carry another version of protobuf than LibTorch exports.
add_library(opencv_image INTERFACE IMPORTED GLOBAL)
find_path(SDTUNE_OPENCV_INCLUDE opencv2/imgproc.hpp PATH_SUFFIXES opencv4 REQUIRED)
target_include_directories(opencv_image SYSTEM INTERFACE "${SDTUNE_OPENCV_INCLUDE}")
foreach(module core imgproc)
  find_library(SDTUNE_OPENCV_${module} opencv_${module} REQUIRED)
  target_link_libraries(opencv_image INTERFACE "${SDTUNE_OPENCV_${module}}")
endforeach()
