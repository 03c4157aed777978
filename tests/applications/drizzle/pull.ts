import { defineConfig } from "drizzle-kit";
export default defineConfig({ dialect: "mysql", out: "./pulled", dbCredentials: { url: process.env.DB_URL! } });
