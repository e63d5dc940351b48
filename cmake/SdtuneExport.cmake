# What a C++ program needs to link the model side: find_package(sdtune) gives the target sdtune::model. Static libraries, headers
# and the package's files go into lib and include of the install prefix; LibTorch is looked for there too (examples/cpp).
include(CMakePackageConfigHelpers)
get_property(model_libraries GLOBAL PROPERTY SDTUNE_MODEL_LIBRARIES)
add_library(sdtune_model INTERFACE)
set_target_properties(sdtune_model PROPERTIES EXPORT_NAME model)
target_link_libraries(sdtune_model INTERFACE ${model_libraries})
target_include_directories(sdtune_model INTERFACE $<INSTALL_INTERFACE:include/sdtune>)
target_compile_features(sdtune_model INTERFACE cxx_std_20)

set(package_folder lib/cmake/sdtune)
install(TARGETS sdtune_model ${model_libraries} EXPORT sdtuneTargets ARCHIVE DESTINATION lib/sdtune)
install(EXPORT sdtuneTargets NAMESPACE sdtune:: DESTINATION "${package_folder}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/model" DESTINATION include/sdtune FILES_MATCHING PATTERN "*.h")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/sdtuneConfig.cmake.in" "${CMAKE_BINARY_DIR}/sdtuneConfig.cmake"
                              INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${CMAKE_BINARY_DIR}/sdtuneConfigVersion.cmake" COMPATIBILITY ExactVersion)
install(FILES "${CMAKE_BINARY_DIR}/sdtuneConfig.cmake" "${CMAKE_BINARY_DIR}/sdtuneConfigVersion.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/LibTorch.cmake" "${CMAKE_CURRENT_LIST_DIR}/OpenCVImage.cmake"
        DESTINATION "${package_folder}")
