B
exp_doubleJ6eSXß?½ä(˜lÒ@zÈ>¿?