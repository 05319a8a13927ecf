#define TWICE(x) ((x) * 2)
/** Opens. */
int api_open(const char *path);
void api_close(int handle);
