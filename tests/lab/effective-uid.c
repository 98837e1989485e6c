/* Prints the effective user, in the words that the public CRI suite looks for.
   Installed setuid root in the test image `nonewprivs`: with no_new_privs the
   setuid bit has no effect and the caller's own user is printed. */
#include <stdio.h>
#include <unistd.h>

int main(void) {
    printf("Effective uid: %ld\n", (long)geteuid());
    return 0;
}
