-- The two databases of a team, each with a role of its own, for psql. Run again, it changes nothing
-- but the passwords. They come from the environment, so they stand in no argument and no history.
\set ON_ERROR_STOP on
\getenv prefect_password PREFECT_DATABASE_PASSWORD
\getenv moorage_password MOORAGE_DATABASE_PASSWORD
SET log_statement = 'none';
SET log_min_error_statement = 'panic';

SELECT format('CREATE ROLE %I LOGIN', name) FROM unnest(ARRAY['prefect', 'moorage']) AS name
  WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
ALTER ROLE prefect PASSWORD :'prefect_password';
ALTER ROLE moorage PASSWORD :'moorage_password';

SELECT format('CREATE DATABASE %I OWNER %I', name, name) FROM unnest(ARRAY['prefect', 'moorage']) AS name
  WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = name) \gexec
REVOKE ALL ON DATABASE prefect, moorage FROM PUBLIC;
