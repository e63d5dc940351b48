# The install component `wheel`: what scikit-build-core packs, laid out as pip unpacks it (see pyproject.toml). It stands
# beside the ordinary install rules, so that one build folder serves both.
if(NOT SKBUILD)
  return()
endif()
add_custom_target(wheel_parts DEPENDS _native sdtune $<TARGET_NAME_IF_EXISTS:sdtune_cuda>
                  $<TARGET_NAME_IF_EXISTS:sdtune-faces>)
set(wheel_program "${SKBUILD_SCRIPTS_DIR}")
set(wheel_share "${SKBUILD_DATA_DIR}/share/sdtune")
install(TARGETS _native LIBRARY DESTINATION sdtune COMPONENT wheel EXCLUDE_FROM_ALL)
install(FILES ${SDTUNE_PACKAGE_FILES} DESTINATION sdtune COMPONENT wheel EXCLUDE_FROM_ALL)
install(TARGETS sdtune RUNTIME DESTINATION "${wheel_program}" COMPONENT wheel EXCLUDE_FROM_ALL)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/configs" DESTINATION "${wheel_share}" COMPONENT wheel EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN "*.yaml" PATTERN "*.json")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/scripts/prove" DESTINATION "${wheel_share}/scripts" COMPONENT wheel EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN "*.py")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/scripts/trackers" DESTINATION "${wheel_share}/scripts" COMPONENT wheel EXCLUDE_FROM_ALL
        FILES_MATCHING PATTERN "*.py")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples/me" DESTINATION "${wheel_share}/examples" COMPONENT wheel EXCLUDE_FROM_ALL)
foreach(model portrait-64 portrait-judge portrait-128 portrait-judge-128)
  if(EXISTS "${PROJECT_SOURCE_DIR}/models/${model}")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/models/${model}" DESTINATION "${wheel_share}/models" COMPONENT wheel
            EXCLUDE_FROM_ALL)
  endif()
endforeach()
set(wheel_faces "")
if(TARGET sdtune-faces)
  install(TARGETS sdtune-faces RUNTIME DESTINATION "${wheel_program}" COMPONENT wheel EXCLUDE_FROM_ALL)
  install(FILES ${SDTUNE_CASCADE_FILES} DESTINATION "${wheel_share}/haarcascades" COMPONENT wheel EXCLUDE_FROM_ALL)
  set(wheel_faces "${wheel_program}/sdtune-faces")
endif()
if(TARGET sdtune_cuda)
  install(TARGETS sdtune_cuda LIBRARY DESTINATION sdtune/lib COMPONENT wheel EXCLUDE_FROM_ALL)
endif()
# The system libraries that they need go into the package.
install(CODE "
  execute_process(COMMAND \"${Python_EXECUTABLE}\" \"${PROJECT_SOURCE_DIR}/scripts/bundle_libraries.py\"
                          \"\${CMAKE_INSTALL_PREFIX}/sdtune\" \"${wheel_program}/sdtune\" ${wheel_faces}
                  COMMAND_ERROR_IS_FATAL ANY)
" COMPONENT wheel EXCLUDE_FROM_ALL)
