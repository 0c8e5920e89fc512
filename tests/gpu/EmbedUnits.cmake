# Writes printed kernels into a table for C++: {"name", R"…(text)…"} for each. -DUNITS=FILE;FILE… -DOUTPUT=FILE
set(table "")
foreach(unit ${UNITS})
  get_filename_component(name ${unit} NAME_WE)
  file(READ ${unit} text)
  string(APPEND table "{\"${name}\", R\"printed(${text})printed\"},\n")
endforeach()
file(WRITE ${OUTPUT} "${table}")
