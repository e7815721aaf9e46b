/* What is visible outside a program's shared object: EXPORTED what the engine sets or calls, HIDDEN
 * what only the program calls. */
#ifndef AVIAL_LINKAGE_H
#define AVIAL_LINKAGE_H

#define EXPORTED __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))

#endif
