# The release archive: one relocatable folder with bin/moejit, the runtime library, the kernel catalogue and the papers.
# `cpack -G TGZ --config build/CPackConfig.cmake` makes it; the test `package` takes one apart.
include(GNUInstallDirs)

if(TARGET moejit)
  target_sources(moejit PRIVATE ${PROJECT_SOURCE_DIR}/tools/moejit/Arc4Random.cpp)
  # A library that no code calls must not become a need of the archive. The old DT_RPATH also finds libnvrtc-builtins,
  # which libnvrtc opens by name, so both may be put into lib/.
  target_link_options(moejit PRIVATE -Wl,--as-needed -Wl,--disable-new-dtags)
  set_target_properties(moejit PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  install(TARGETS moejit RUNTIME DESTINATION bin)
endif()
install(TARGETS moejit_runtime ARCHIVE DESTINATION lib)
file(GLOB runtimeHeaders CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/*.h)
install(FILES ${runtimeHeaders} DESTINATION include/moejit/runtime)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernels ${PROJECT_SOURCE_DIR}/docs DESTINATION .)
install(FILES
  ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY.md ${PROJECT_SOURCE_DIR}/README.md
  DESTINATION .)

# The archive needs no tests: packing does not build `all` first.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME moejit)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(archiveName moejit-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_FILE_NAME ${archiveName})
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)

if(MOEJIT_TESTS AND TARGET moejit AND NOT MOEJIT_SANITIZE)
  add_test(NAME package
    COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DNAME=${archiveName}
            -DOBJDUMP=${CMAKE_OBJDUMP} -P ${PROJECT_SOURCE_DIR}/cmake/CheckPackage.cmake)
endif()
