"""Configure JupyterHub to serve a workshop group from one machine. See *Before the workshop* in teach/workshop.md.

Participants log in with a name of their own and a shared password. Each works on a clone of the course in HOMES, and
gets the same lessons as from `make lab`. Everything runs as the user who starts the hub, so use these settings only for
a group whose members trust each other.
"""

import os
import subprocess
from pathlib import Path

COURSE = Path(__file__).resolve().parent.parent
HOMES = Path(os.environ["HOMES"]).expanduser()
HOMES.mkdir(parents=True, exist_ok=True)


def prepare_home(spawner):
    """Clone the course for a new user, link its environment, and update the copies of the lessons.

    Returning users find their work as they left it.
    """
    home = HOMES / spawner.user.name
    if not home.exists():
        subprocess.run(["git", "clone", "--quiet", COURSE, home], check=True)
        (home / ".venv").symlink_to(COURSE / ".venv")
    subprocess.run([home / ".venv" / "bin" / "python", "-m", "tools.reader.copies"], cwd=home, check=True)


c = get_config()  # noqa: F821 (JupyterHub's own)
c.JupyterHub.db_url = f"sqlite:///{HOMES / 'hub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(HOMES / "hub-secret")
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = str(HOMES / "{username}")
c.Spawner.pre_spawn_hook = prepare_home
c.Spawner.cmd = [str(COURSE / ".venv" / "bin" / "jupyterhub-singleuser")]
c.Spawner.args = [f"--LabApp.app_settings_dir={COURSE / 'tools' / 'reader' / 'lab'}"]
c.Spawner.notebook_dir = "~/work"
c.Spawner.default_url = "/lab/tree/START.md"
c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = os.environ["PASSWORD"]  # at least eight characters
c.Authenticator.allow_all = True
c.Authenticator.username_pattern = "[a-z0-9_-]+"  # the user name is also the name of the user's folder
