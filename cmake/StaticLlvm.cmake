# Debian's MLIR archives ask for libLLVM's dylib. moejit links LLVM statically, so that one file runs on another Linux
# and lives beside other LLVMs in one process: every use of the dylib is replaced by the archives it stands for.
get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target IN LISTS imported)
  get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
  if(target MATCHES "^MLIR" AND links)
    list(TRANSFORM links REPLACE "^LLVM$" "LLVMSupport")
    list(FILTER links EXCLUDE REGEX "LINK_ONLY:LLVM>")
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${links}")
  endif()
endforeach()
# The archive names shared libraries; their archives are beside them. z3 is asked for and never called.
find_library(zlibArchive libz.a REQUIRED)
find_library(zstdArchive libzstd.a REQUIRED)
set_target_properties(LLVMSupport PROPERTIES
  INTERFACE_LINK_LIBRARIES "LLVMDemangle;rt;dl;m;${zlibArchive};${zstdArchive}")
# The one MLIR archive in use that needs more of LLVM than its support library: moejit-opt's remarks.
set_property(TARGET MLIRRemarkStreamer APPEND PROPERTY INTERFACE_LINK_LIBRARIES LLVMRemarks)
